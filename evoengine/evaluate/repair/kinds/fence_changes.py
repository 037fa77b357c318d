"""What orders memory and is missing: fences before counters and flags, barriers of a warp, groups
of copies that are committed or waited for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import BlockStatement, StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_ATOMIC = re.compile(r"\batomic(Add|Inc|Exch|CAS|Max|Min|Or|Sub|Dec)\w*\s*\(")
_VOLATILE = re.compile(r"volatile")
_WAIT = re.compile(r"wait_group|wait_all|wait_prior|\w*wait\w*\s*[<(]")
_COMMIT = re.compile(r"commit")
_WARP = re.compile(r"__syncwarp|__shfl|__ballot|wmma|mma_sync|% 32|& 31|/ 32|>> 5")
_MOST_WAITS = 3
_MOST = 40  # of one kind


def fence_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Fences, barriers of a warp, commits and waits inserted."""
    blocks = StatementBlocks(code)
    every = [items for _, items in blocks.blocks()]
    yield from _fences(code, blocks, every)
    yield from _barriers(code, blocks, every)
    yield from _commits(code, blocks, every)
    yield from _waits(code, every)


def _text(code: KernelCode, item: BlockStatement) -> str:
    return code.tokens.source(item.first, item.last)


def _fences(
    code: KernelCode, blocks: StatementBlocks, every: Sequence[list[BlockStatement]]
) -> Iterator[SourceChange]:
    """`__threadfence()` between what was written for other blocks and a counter or flag that tells
    them, and behind the place where they are told.
    """
    tokens, kind = code.tokens, "fence missing"
    text = tokens.code
    is_told = _ATOMIC.search(text) or _VOLATILE.search(text)
    for items in every if is_told else ():
        for number, item in enumerate(items):
            own = _text(code, item)
            is_flag = _ATOMIC.search(own) or (_VOLATILE.search(own) and "asm" not in own)
            before = items[number - 1] if number else None
            fenced = before is not None and "__threadfence" in _text(code, before)
            if not is_flag or fenced or re.match(r"(for|while)\b", own):
                continue
            yield code.inserted(item.first - 1, " __threadfence();", kind)
            if before is not None and "__syncthreads" in _text(code, before):
                yield code.inserted(before.first - 1, " __threadfence();", kind)


def _barriers(
    code: KernelCode, blocks: StatementBlocks, every: Sequence[list[BlockStatement]]
) -> Iterator[SourceChange]:
    """A barrier of the block or of the warp between two statements of which one writes to an array
    what the other has, and at the end of a loop that does both.
    """
    tokens = code.tokens
    arrays = {
        item.name
        for item in code.names.all
        if (
            item.sort == "pointer"
            or (item.sort == "array" and item.is_parameter)
            or blocks.is_shared(item)
        )
        and not _is_global(code, item)
    }
    roots = _roots(code, blocks, arrays)
    words = [("__syncthreads();", "barrier missing, between uses")]
    if _WARP.search(tokens.code):
        words.append(("__syncwarp();", "barrier missing, of a warp"))
    places: list[int] = []
    for items in every:
        changed: set[str] = set()
        read: set[str] = set()
        both = [set[str](), set[str]()]
        for item in items:
            text = _text(code, item)
            if re.match(r"__sync(threads|warp)|asm volatile\(\"bar", text):
                changed, read = set(), set()
                continue
            is_call = item.is_simple and tokens.text(item.first + 1) in ("(", "::", "<")
            own = {roots.get(it, it) for it in blocks.changed(item.first, item.last)} & arrays
            used = {roots.get(it, it) for it in blocks.reads(item.first, item.last)} & arrays
            if item.is_simple and blocks.declared(item.first, item.last) & roots.keys():
                used = set()  # another name for an array reads nothing
            own |= used if is_call else set()
            if changed & used or read & own:
                places.append(item.first - 1)
            changed |= own
            read |= used
            both = [both[0] | own, both[1] | used]
        if both[0] & both[1] and _is_loop(code, items[0].first - 1):
            places.append(items[-1].last)
            places.append(items[0].first - 1)
    for place in dict.fromkeys(places[:_MOST]):
        for new, kind in words:
            yield code.inserted(place, f" {new}", kind)


def _roots(code: KernelCode, blocks: StatementBlocks, arrays: set[str]) -> dict[str, str]:
    """Of each pointer that is another name for a part of an array, that array."""
    found: dict[str, str] = {}
    for item in code.names.all:
        value = blocks.first_value(item) if item.sort == "pointer" else None
        names = (
            [
                code.tokens.text(place)
                for place in range(value[0], value[1] + 1)
                if code.tokens.text(place) in arrays and code.tokens.text(place) != item.name
            ]
            if value is not None
            else []
        )
        if names:
            found[item.name] = found.get(names[0], names[0])
    return found


def _is_global(code: KernelCode, item: DeclaredName) -> bool:
    """Whether a variable is a parameter of a kernel, such as a pointer to global memory."""
    if not item.is_parameter:
        return False
    place = code.tokens.enclosing[item.position]
    first, _ = code.extents.statement(max(place, 0))
    return code.tokens.has_any(first, place, {"__global__"})


def _is_loop(code: KernelCode, opening: int) -> bool:
    """Whether the { at `opening` begins the body of a loop."""
    head = code.tokens.partners.get(opening - 1, -1) - 1
    is_head = code.tokens.text(opening - 1) == ")"
    return is_head and code.tokens.text(head) in ("for", "while")


def _commits(
    code: KernelCode, blocks: StatementBlocks, every: Sequence[list[BlockStatement]]
) -> Iterator[SourceChange]:
    """A group of copies committed in every round, an empty one too, and behind the copies."""
    tokens, kind = code.tokens, "commit missing"
    statements = [
        text
        for pair in code.statements
        if _COMMIT.search(text := tokens.source(*pair)) and "wait" not in text
    ]
    for commit in list(dict.fromkeys(statements))[:2]:
        for items in every:
            for number, item in enumerate(items):
                following = items[number + 1 : number + 2]
                waits = bool(following) and _WAIT.search(_text(code, following[0])) is not None
                text = _text(code, item)
                if tokens.text(item.first) == "if" and waits and not _WAIT.search(text):
                    condition = tokens.source(item.first + 2, tokens.partners[item.first + 1] - 1)
                    if not re.search(r"[;}]\s*else\b", text):
                        yield code.inserted(item.last, f" if (!({condition})) {commit}", kind)
                copies = re.search(r"memcpy_async|cp\.async\.c|copy|load", text) is not None
                # a function of one copy is called for many, which make up one group
                copies = copies and not (text.startswith("asm") and not code.in_kernel(item.first))
                if not _COMMIT.search(text) and (waits or (copies and not following)):
                    yield code.inserted(item.last, f" {commit}", kind)


def _waits(code: KernelCode, every: Sequence[list[BlockStatement]]) -> Iterator[SourceChange]:
    """A wait of the kernel once more before a barrier that has none before it."""
    tokens = code.tokens
    known = [
        text
        for pair in code.statements
        if _WAIT.search(text := tokens.source(*pair)) and len(text) < 120 and "{" not in text
    ]
    if "__pipeline_memcpy_async" in tokens.code:
        known.append("__pipeline_wait_prior(0);")
    elif "cp.async" in tokens.code and 'asm volatile("cp' in tokens.code:
        known.append('asm volatile("cp.async.wait_all;" ::: "memory");')
    waits = list(dict.fromkeys(known))[:_MOST_WAITS]
    for items in every:
        for number, item in enumerate(items):
            is_barrier = re.match(r"__sync|__threadfence_block|\w*sync\w*[(<]", _text(code, item))
            before = _text(code, items[number - 1]) if number else ""
            if not is_barrier or _WAIT.search(before):
                continue
            for text in waits:
                yield code.inserted(item.first - 1, f" {text}", "wait for copies missing")
