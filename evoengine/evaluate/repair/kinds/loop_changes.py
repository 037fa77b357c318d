"""What loops lack: the stride of all that share them, sums that begin anew, guards of a scan."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_LANE = re.compile(r"\b(lane|tid|thread|t|i)\w*\b", re.IGNORECASE)
_MOST_LANES = 3
_BEGUN = re.compile(r"(?:const )?(?:int|unsigned) (\w+) = (.+); (.+)", re.DOTALL)
_BOUNDED = re.compile(r"(\w+) < ([^<>=&|]+)", re.DOTALL)
_OWN_BLOCK = re.compile(r"\b(\w+) = (?:\w+\()?blockIdx\.([xyz])\)?\s*[;,]")
_OWN_LANE = re.compile(r"\blane\w*\b", re.IGNORECASE)
_HALVED = re.compile(r"/= 2\b|>>= 1\b")
_THREADS = re.compile(r"THREAD|BLOCK|WARP")
_FLOATS = ("float", "double", "half", "int")

_ABOVE = {">": ">=", ">=": ">"}
Range = tuple[int, int]


def loop_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Steps times a size, arrays set back in each round, conditions of the steps of a scan, loops
    over more elements than there are threads.
    """
    yield from _over_the_rest(code)
    for loop in range(len(code.tokens)):
        is_loop = code.tokens.text(loop) == "for" and loop + 1 in code.tokens.partners
        if is_loop and code.function_places[loop]:
            yield from _steps(code, loop)
            yield from _steps_of_blocks(code, loop)
            yield from _steps_of_lanes(code, loop)
            yield from _halved(code, loop)
            yield from _resets(code, loop)
            yield from _guards(code, loop)


def _over_the_rest(code: KernelCode) -> Iterator[SourceChange]:
    """`if (i < n)` made a loop from i on, in steps of the threads: each thread does one alone."""
    tokens = code.tokens
    for condition in range(len(tokens)):
        is_condition = tokens.text(condition) == "if" and condition + 1 in tokens.partners
        if is_condition and code.function_places[condition]:
            for step in _counts(code, condition):
                if (loop := _loop_for(code, condition, step)) is not None:
                    last, new = loop
                    yield code.replaced(condition, last, new, "loop over the rest missing")


def _loop_for(code: KernelCode, condition: int, step: str) -> tuple[int, str] | None:
    """The last token that a loop takes the place of, and the loop; None for other conditions."""
    tokens, opening = code.tokens, condition + 1
    closing = tokens.partners[opening]
    inside = tokens.source(opening + 1, closing - 1)
    if begun := _BEGUN.fullmatch(inside):
        name, start, bound = begun.groups()
        return closing, f"for (int {name} = {start}; {bound}; {name} += {step})"
    bounded, own = _BOUNDED.fullmatch(inside), code.names.at(opening + 1)
    if bounded is None or own is None or own.sort != "int" or own.is_parameter:
        return None
    name, bound = bounded.groups()
    if not _is_constant(code, own.declaration):
        return closing, f"for (; {inside}; {name} += {step})"
    first, last = code.body(closing)
    return last, (
        f"for (int evo_{name} = {name}; evo_{name} < {bound}; evo_{name} += {step})"
        f" {{ const int {name} = evo_{name}; {tokens.source(first, last)} }}"
    )


def _counts(code: KernelCode, position: int) -> list[str]:
    """How many threads there may be: of a block, or of the grid."""
    names = [
        item.name
        for item in code.visible(position, "int")
        if item.name.isupper() and _THREADS.search(item.name)
    ]
    return [*names, "blockDim.x", "blockDim.x * gridDim.x", "1"]


def _is_constant(code: KernelCode, declaration: int) -> bool:
    """Whether what is declared at a place cannot be changed afterwards."""
    before = (code.tokens.text(declaration - 1), code.tokens.text(declaration))
    return bool({"const", "constexpr"} & set(before))


def _steps(code: KernelCode, loop: int) -> Iterator[SourceChange]:
    """`i += 32` made `i += 32 * WARPS`, and the begin that belongs to it."""
    tokens, closing = code.tokens, code.tokens.partners[loop + 1]
    for place in range(loop + 2, closing):
        if tokens.text(place) != "+=" or tokens.enclosing[place] != loop + 1:
            continue
        last = code.extents.last_of(place, 0)
        text = tokens.source(place + 1, last)
        sizes = [size for size in code.sizes(place) if size not in text]
        grids = [item for item in ("gridDim.x", "gridDim.y", "blockDim.x") if item not in text]
        grids = [item for item in grids if item.partition(".")[0] in tokens.code]
        for size in (*sizes, *grids):
            new = f"({text}) * {size}" if last > place + 1 else f"{text} * {size}"
            yield code.replaced(place + 1, last, new, "step of a loop times a size")


def _begun_steps(
    code: KernelCode, loop: int, begin: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], str, Range]]:
    """Where a pattern matches the begin of a loop, the match, and of each `name += step` in its
    head the name and the tokens of the step.
    """
    tokens, ends = code.tokens, code.head_ends(loop + 1)
    begun = begin.search(tokens.source(loop + 2, ends[0])) if len(ends) == 2 else None
    for place in range(ends[1], tokens.partners[loop + 1]) if begun else ():
        if begun and tokens.text(place) == "+=":
            yield begun, tokens.text(place - 1), (place + 1, code.extents.last_of(place, 0))


def _steps_of_blocks(code: KernelCode, loop: int) -> Iterator[SourceChange]:
    """`i = blockIdx.x; i < n; i += ROUNDS` made `i += gridDim.x`: blocks take turns."""
    for begun, name, step in _begun_steps(code, loop, _OWN_BLOCK):
        if name == begun[1] and "gridDim" not in code.tokens.source(*step):
            yield code.replaced(*step, f"gridDim.{begun[2]}", "step of all blocks")


def _steps_of_lanes(code: KernelCode, loop: int) -> Iterator[SourceChange]:
    """`i = begin + lane; i < n; i += CHUNK` made `i += 32`: the lanes of a warp take turns."""
    for _, _, step in _begun_steps(code, loop, _OWN_LANE):
        if not code.tokens.source(*step).isdigit():
            yield code.replaced(*step, "32", "step of all lanes")


def _halved(code: KernelCode, loop: int) -> Iterator[SourceChange]:
    """`step = GROUP; step > 0; step /= 2` made `step = GROUP / 2`, and the other way round; and one
    step more or less at its end.
    """
    tokens = code.tokens
    ends = code.head_ends(loop + 1)
    if len(ends) != 2 or not _HALVED.search(tokens.source(ends[1], tokens.partners[loop + 1])):
        return
    bound = next((at for at in range(*ends) if tokens.text(at) in _ABOVE), None)
    if bound is not None:
        other = _ABOVE[tokens.text(bound)]
        yield code.replaced(bound, bound, other, "end of a halving loop")
    sign = next((at for at in range(loop + 2, ends[0]) if tokens.text(at) == "="), ends[0])
    if sign + 1 < ends[0]:
        first, last = sign + 1, ends[0] - 1
        text = tokens.source(first, last)
        wider = text[: -len(" / 2")] if text.endswith(" / 2") else f"2 * ({text})"
        halved = f"{text} / 2" if first == last else f"({text}) / 2"
        for new in (halved, wider):
            yield code.replaced(first, last, new, "begin of a halving loop")


def _resets(code: KernelCode, loop: int) -> Iterator[SourceChange]:
    """Sums in an array that begin anew in each round of a loop."""
    tokens, body = code.tokens, code.tokens.partners[loop + 1] + 1
    if tokens.text(body) != "{" or body not in tokens.partners:
        return
    added = {
        tokens.text(name) for name, _, _ in code.indices if body < name < tokens.partners[body]
    }
    called = {tokens.text(place) for place in range(body, tokens.partners[body])}
    for item in code.visible(body, "array"):
        kind = tokens.text(item.declaration)
        is_local = not item.is_parameter and kind in _FLOATS and _is_set(code, item.position)
        if is_local and item.name in added | called:
            size = f"sizeof({item.name}) / sizeof({kind})"
            new = (
                f" for (unsigned evo_i = 0; evo_i < {size}; ++evo_i)"
                f" reinterpret_cast<{kind}*>({item.name})[evo_i] = 0;"
            )
            yield code.inserted(body, new, "reset missing, of an array")


def _is_set(code: KernelCode, position: int) -> bool:
    """Whether an array is declared with values, as sums are."""
    place = position + 1
    while code.tokens.text(place) == "[":
        place = code.tokens.partners[place] + 1
    return code.tokens.text(place) in ("=", "{")


def _guards(code: KernelCode, loop: int) -> Iterator[SourceChange]:
    """A step of a scan that all lanes take: those without an earlier one must not."""
    tokens, (first, last) = code.tokens, _body(code, loop)
    text = tokens.source(first, last)
    step = code.loop_variable(loop + 2)
    if not step or not re.search(rf"__shfl_(up|down)_sync|\[[^\]]*[-+] *{re.escape(step)}\b", text):
        return
    lanes = [item.name for item in code.visible(first, "int") if _LANE.fullmatch(item.name)]
    for lane in [*[one for one in lanes if one != step][:_MOST_LANES], "threadIdx.x"]:
        for begin, end in code.statements:
            if not first <= begin < last or end > last:
                continue
            if code.declares(begin, end):
                continue
            own = tokens.source(begin, end)
            yield code.replaced(
                begin, end, f"if ({lane} >= {step}) {own}", "guard of a scan missing"
            )
            if "down" in text or f"+ {step}" in text:
                yield code.replaced(
                    begin, end, f"if ({lane} + {step} < 32) {own}", "guard of a scan missing"
                )


def _body(code: KernelCode, loop: int) -> Range:
    """The statements of a loop."""
    first, last = code.body(code.tokens.partners[loop + 1])
    return (first + 1, last - 1) if code.tokens.text(first) == "{" else (first, last)
