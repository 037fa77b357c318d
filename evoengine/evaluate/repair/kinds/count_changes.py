"""Counts of what is left, of rounds and of steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_STEP = re.compile(r"\+= (\w+)$")
_MOST_STAGES = 4
_STAGES = re.compile(r"STAGE|RING|SLOT|BUFFER|DEPTH|^k[A-Z]\w*(Stage|Slot|Ring)", re.IGNORECASE)
# one over the root of the length of a head
_ROOTS = {16: "0.25f", 32: "0.17677670f", 64: "0.125f", 96: "0.10206207f", 128: "0.08838835f",
          256: "0.0625f"}  # fmt: skip
_SAME = 1e-3
_LONGEST_NAME = 24
# what a block's threads, or those of some of its warps, are called
_THREADS = re.compile(
    r"blockDim\.x|\w*(?:THREAD|WORKER|LOADER|PRODUC|CONSUM|WARP|LANE|ROLE|TEAM|LOAD|COPIER)\w*"
    r"(?: \* (?:32|WARP_SIZE))?",
    re.IGNORECASE,
)
_END = re.compile(r"end|stop|last|limit|until", re.IGNORECASE)
_NEAREST = 12  # variables, the last declared first


def count_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Rests that may be zero, ends of loops with steps, parities, loops that count the other way,
    sizes that lack a factor.
    """
    yield from _rests(code)
    yield from _ends(code)
    yield from _parities(code)
    yield from _reversed(code)
    yield from _sized(code)
    yield from _scales(code)
    yield from _counted(code)
    yield from _steps(code)
    yield from _ranges(code)
    yield from _roles(code)


def _rests(code: KernelCode) -> Iterator[SourceChange]:
    """`S % 256`, the rest of the last part, made `(S - 1) % 256 + 1`, which is never 0."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) != "%" or not code.extents.is_binary(place):
            continue
        left, right = code.extents.operand_before(place), code.extents.operand_behind(place)
        own = code.names.at(left[0]) if left[0] == left[1] else None
        if own is not None and (own.is_parameter or own.name.isupper()):
            new = f"(({own.name} - 1) % {tokens.source(*right)} + 1)"
            yield code.replaced(left[0], right[1], new, "rest that may be zero")


def _ends(code: KernelCode) -> Iterator[SourceChange]:
    """`for (; i < end; i += STEP)` made `i + STEP <= end`: no step beyond the end."""
    tokens = code.tokens
    for _, begins, ends, closing in code.counted_loops():
        condition = begins + 1, ends - 1
        step = _STEP.search(tokens.source(ends + 1, closing - 1))
        is_bare = tokens.text(condition[0] + 1) == "<" and condition[1] > condition[0] + 1
        if step is None or not is_bare:
            continue
        end = tokens.source(condition[0] + 2, condition[1])
        new = f"{tokens.text(condition[0])} + {step[1]} <= {end}"
        yield code.replaced(*condition, new, "step of a loop beyond its end")


def _parities(code: KernelCode) -> Iterator[SourceChange]:
    """`turn % 2` made `turn / STAGES % 2`: a stage comes again after all of them."""
    tokens = code.tokens
    stages = [
        item.name
        for item in code.names.all
        if item.sort == "int" and _STAGES.search(item.name) and item.name[:1].isupper()
    ] + [name for name in code.names.macros if _STAGES.search(name)]
    for place in range(len(tokens) - 1):
        text = tokens.source(place, place + 1)
        if text not in ("% 2", "& 1") or not code.extents.is_binary(place):
            continue
        first, last = code.extents.operand_before(place)
        for name in list(dict.fromkeys(stages))[:_MOST_STAGES]:
            if first <= last and name not in tokens.source(first, last):
                new = f"({tokens.source(first, last)}) / {name}"
                new = f"({new})" if tokens.text(place) == "&" else new
                yield code.replaced(first, last, new, "round of all stages")


def _reversed(code: KernelCode) -> Iterator[SourceChange]:
    """`x[first - i]` in a loop of n rounds made `x[first - (n - 1 - i)]`, or with + and -."""
    tokens = code.tokens
    for _, begins, ends, closing in code.counted_loops():
        condition = begins + 1, ends - 1
        counts = tokens.source(ends + 1, closing - 1).startswith("++")
        is_from_zero = tokens.source(begins - 2, begins - 1) == "= 0"
        is_bare = tokens.text(condition[0] + 1) == "<" and condition[1] == condition[0] + 2
        if not (counts and is_from_zero and is_bare):
            continue
        name, extent = tokens.text(condition[0]), tokens.text(condition[1])
        first, last = code.body(closing)
        for at in range(first, last):
            is_own = tokens.text(at) == name and tokens.text(at - 1) in ("+", "-", "[", "(", ",")
            if is_own and tokens.text(at + 1) in ("]", ")", ",", ";", "+", "-"):
                yield code.replaced(at, at, f"({extent} - 1 - {name})", "rounds counted backwards")


def _sized(code: KernelCode) -> Iterator[SourceChange]:
    """`parts + size_t(z) * 4096` made `size_t(z) * tiles * 4096`."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) != "*" or not code.extents.is_binary(place):
            continue
        first, last = code.extents.operand_before(place)
        is_wide = tokens.text(first) in ("size_t", "int64_t") and tokens.text(first + 1) == "("
        if first > last or not is_wide:
            continue
        for item in code.visible(place, "int"):
            if not item.is_parameter and not item.name.isupper():
                new = f" * {item.name}"
                yield code.inserted(last, new, "factor missing, of the number of parts")


def _counted(code: KernelCode) -> Iterator[SourceChange]:
    """`++count` made `count += WIDTH`: elements are counted, not the vectors that hold them."""
    tokens = code.tokens
    for first, last in code.statements:
        text = tokens.source(first, last)
        found = re.fullmatch(r"(?:\+\+([\w.]+)|([\w.]+)\+\+|([\w.]+) \+= 1(?:\.0f)?);", text)
        if found is None:
            continue
        for item in code.visible(first, "int"):
            if item.name.isupper() and len(item.name) < _LONGEST_NAME:
                new = f"{found[1] or found[2] or found[3]} += {item.name};"
                yield code.replaced(first, last, new, "vectors counted for elements")


def _steps(code: KernelCode) -> Iterator[SourceChange]:
    """`prefetch(row + 1)` in a loop with `row += gridDim.x` made `prefetch(row + gridDim.x)`."""
    tokens = code.tokens
    for _, _, ends, closing in code.counted_loops():
        step = re.match(r"(\w+) \+= ([^,]+)", tokens.source(ends + 1, closing - 1))
        if step is None:
            continue
        for at in range(closing, code.body(closing)[1]):
            if tokens.source(at, at + 2) == f"{step[1]} + 1":
                yield code.replaced(at + 2, at + 2, step[2], "neighbour for the next of a step")


def _roles(code: KernelCode) -> Iterator[SourceChange]:
    """`i += blockDim.x` made `i += WORKERS`: those of one role run the loop, not all."""
    tokens = code.tokens
    for place, _, ends, closing in code.counted_loops():
        sign = next((at for at in range(ends, closing) if tokens.text(at) == "+="), None)
        if sign is None:
            continue
        last = code.extents.last_of(sign, 0)
        text = tokens.source(sign + 1, last)
        if not _THREADS.fullmatch(text):
            continue
        names = [name for name in code.sizes(place) if _THREADS.fullmatch(name) and name != text]
        for new in (*names, "(blockDim.x - 32)"):
            if new != text:
                yield code.replaced(sign + 1, last, new, "step by the threads of a role")


def _ranges(code: KernelCode) -> Iterator[SourceChange]:
    """`offsets[i] >= begin` made `offsets[i] >= begin && offsets[i + 1] <= end`: a range lies
    inside where its end does, too.
    """
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) not in (">=", ">") or not code.extents.is_binary(place):
            continue
        left, right = code.extents.operand_before(place), code.extents.operand_behind(place)
        if left[0] > left[1] or tokens.text(left[1]) != "]" or not code.function_places[place]:
            continue
        index = tokens.partners[left[1]]
        if code.extents.postfix(left[0]) != left[1] or index <= left[0]:
            continue
        array, at = tokens.source(left[0], index), tokens.source(index + 1, left[1] - 1)
        nearest = code.visible(place, "int")[:_NEAREST]
        known = {item.name for item in nearest if not item.name.isupper()}
        own = set(re.findall(r"\w+", tokens.source(left[0], right[1])))
        for name in sorted(known - own, key=lambda it: (_END.search(it) is None, it)):
            new = f" && {array}{at} + 1] <= {name}"
            yield code.inserted(right[1], new, "end of a range unchecked")


def _scales(code: KernelCode) -> Iterator[SourceChange]:
    """The scale of heads of another length."""
    for place, token in enumerate(code.tokens.tokens):
        if token.kind != "number" or "." not in token.text or "x" in token.text:
            continue
        value = float(token.text.rstrip("fF"))
        own = [n for n in _ROOTS if abs(value * n**0.5 - 1.0) < _SAME]
        for length in _ROOTS if own else ():
            if length not in own:
                yield code.replaced(place, place, _ROOTS[length], "scale of another length")
