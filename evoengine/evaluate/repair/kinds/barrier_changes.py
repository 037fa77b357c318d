"""Barriers at places where they are often forgotten: before one thread counts for all, between two
calls of a function, before memory is used as something else; and barriers that not all reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import BlockStatement, StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_BARRIER = re.compile(r"__sync(threads|warp)\(")
_COUNTS = re.compile(r"if \([^()]*\b(threadIdx\.x|tid|t|thread) == 0[^;]*\batomic\w+\(")
_WAITS = re.compile(r"wait")
_NEW_NAME = re.compile(r"\w[\w ]*\* ?(const )?\w+ = reinterpret_cast<[^;]*>\((\w+)[^;]*\);")


def barrier_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Barriers inserted, made to be reached by all, and exchanged with waits for copies."""
    blocks = StatementBlocks(code)
    for opening, items in blocks.blocks():
        texts = [code.tokens.source(item.first, item.last) for item in items]
        yield from _before_a_count(code, items, texts)
        yield from _of_another_use(code, items, texts)
        yield from _for_all(code, items, texts)
        yield from _behind_waits(code, items, texts)
        yield from _between_calls(code, opening, items, texts)


def _before_a_count(
    code: KernelCode, items: list[BlockStatement], texts: list[str]
) -> Iterator[SourceChange]:
    """`if (threadIdx.x == 0) last = atomicAdd(...)` behind what all threads have stored."""
    for number, item in enumerate(items):
        before = texts[number - 1] if number else ""
        if number and _COUNTS.match(texts[number]) and not _BARRIER.search(before):
            kind = "barrier missing, before a count"
            yield code.inserted(item.first - 1, " __syncthreads();", kind)


def _of_another_use(
    code: KernelCode, items: list[BlockStatement], texts: list[str]
) -> Iterator[SourceChange]:
    """`half* weights = reinterpret_cast<half*>(scores)` behind what reads the scores."""
    kind = "barrier missing, before another use of memory"
    for number, item in enumerate(items):
        found = _NEW_NAME.fullmatch(texts[number])
        is_read = found is not None and any(
            re.search(rf"\b{found[2]}(\[| \+)", text) for text in texts[:number]
        )
        if is_read and not _BARRIER.search(texts[number - 1]):
            for barrier in ("__syncthreads", "__syncwarp"):
                yield code.inserted(item.first - 1, f" {barrier}();", kind)


def _for_all(
    code: KernelCode, items: list[BlockStatement], texts: list[str]
) -> Iterator[SourceChange]:
    """`if (more) __syncthreads()` made `__syncthreads()`."""
    for item, text in zip(items, texts, strict=True):
        if text.startswith("if") and re.fullmatch(r"if \(.*\) __sync\w+\(\);", text):
            new = text[text.rindex("__sync") :]
            yield code.replaced(item.first, item.last, new, "barrier for all")


def _behind_waits(
    code: KernelCode, items: list[BlockStatement], texts: list[str]
) -> Iterator[SourceChange]:
    """`__syncthreads(); wait()` made `wait(); __syncthreads()`."""
    for number in range(1, len(items)):
        one, other = texts[number - 1], texts[number]
        is_wait = _WAITS.search(other) is not None and not _BARRIER.search(other)
        if re.fullmatch(r"__sync\w+\(\);", one) and is_wait and len(other) < 120:
            span = items[number - 1].first, items[number].last
            yield code.replaced(*span, f"{other} {one}", "barrier before the wait")


def _between_calls(
    code: KernelCode, opening: int, items: list[BlockStatement], texts: list[str]
) -> Iterator[SourceChange]:
    """A barrier at the begin of a function that has shared memory of its own: the call before may
    still read it.
    """
    head, _ = code.extents.statement(max(opening - 1, 0))
    is_function = code.tokens.enclosing[opening] == -1
    if not is_function or code.tokens.has_any(head, opening, {"__global__"}):
        return
    names = [found[1] for text in texts if (found := re.search(r"__shared__[^;]* (\w+)\[", text))]
    if not names or not any(_BARRIER.search(text) for text in texts):
        return
    for item, text in zip(items, texts, strict=True):
        if _BARRIER.search(text):
            return
        if not text.startswith("__shared__") and re.search(rf"\b({'|'.join(names)})\[", text):
            kind = "barrier missing, between calls"
            yield code.inserted(item.first - 1, " __syncthreads();", kind)
            return
