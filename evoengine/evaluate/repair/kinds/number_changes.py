"""Changes of numbers: halves, doubles, neighbours, names in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_WHOLE = re.compile(r"\d+[uUlL]*")
_MOST = 1 << 31
INFINITIES = ("__int_as_float(0xff800000)", "__int_as_float(0x7f800000)")
_LARGE = 1e4  # a number that stands for infinity
IN_A_LOOP = "in a loop"
_LANES = 8  # fewer are counted one by one
_NEAREST = 2  # variables, the last declared first
_NEAR_POWER = (127, 255, 448, 511)
# Constants of kernels: with digits exchanged, or cut too short, one is still near.
_CONSTANTS = (
    1.4426950408889634,  # log2(e)
    0.6931471805599453,  # ln(2)
    0.7071067811865476,  # 1 / sqrt(2)
    1.4142135623730951,
    3.141592653589793,
    2.718281828459045,
    0.3989422804014327,  # 1 / sqrt(2 pi)
    0.7978845608028654,  # sqrt(2 / pi)
    0.044715,  # of GELU by tanh
    1.702,  # of GELU by a sigmoid
)
_NEAR, _SAME = 0.15, 1e-6  # relative


def number_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every number, changed."""
    floats = _float_texts(code)
    for position, token in enumerate(code.tokens.tokens):
        if token.kind != "number":
            continue
        if _WHOLE.fullmatch(token.text):
            yield from _whole(code, position)
        elif token.text[:2] not in ("0x", "0X"):
            yield from _fraction(code, position, floats)


def _whole(code: KernelCode, position: int) -> Iterator[SourceChange]:
    text = code.tokens.text(position)
    digits = text.rstrip("uUlL")
    value, suffix = int(digits), text[len(digits) :]
    if value > _MOST:
        return
    place = _place(code, position)
    others = {
        "doubled": 2 * value,
        "halved": value // 2 if value % 2 == 0 else value,
        "one more": value + 1,
        "one less": value - 1,
        "four times": 4 * value,
        "a quarter": value // 4 if value % 4 == 0 else value,
        "eight times": 8 * value,
        "an eighth": value // 8 if value % 8 == 0 else value,
        "set to zero": 0,
        "set to one": 1,
    }
    seen = {value}
    for how, other in others.items():
        if other not in seen and other >= 0:
            seen.add(other)
            kind = f"number {how} {place}"
            if place == IN_A_LOOP and _leaves_powers(value, other):
                kind += ", of a power of two"
            yield code.replaced(position, position, f"{other}{suffix}", kind)
    near = _nearby_numbers(code, position) - seen
    for other in sorted(near):
        yield code.replaced(position, position, f"{other}{suffix}", f"number of the line {place}")
    if value > 0:
        for item in code.visible(position, "int"):
            constant = item.is_parameter or item.name.isupper()
            if constant:
                yield code.replaced(position, position, item.name, "name for a number")
            elif code.in_index(position):
                yield code.replaced(position, position, item.name, "name for a number, indexed")
    elif value == 0:
        for item in code.visible(position, "int")[:6]:
            yield code.replaced(position, position, item.name, "name for zero")


def _leaves_powers(value: int, other: int) -> bool:
    """Whether a number of lanes, which is a power of two, is made its neighbour."""
    return value >= _LANES and value & (value - 1) == 0 and abs(value - other) == 1


def _place(code: KernelCode, position: int) -> str:
    """Where a number stands, as far as it says how likely it is wrong."""
    if code.loop_of(position) is not None:
        return IN_A_LOOP
    if code.in_index(position):
        return "in an index"
    return "elsewhere" if code.function_places[position] else "outside"


def _nearby_numbers(code: KernelCode, position: int) -> set[int]:
    """The other whole numbers of the same statement."""
    first, last = code.extents.statement(position)
    texts = [code.tokens.text(place) for place in range(first, last + 1)]
    return {int(text.rstrip("uUlL")) for text in texts if _WHOLE.fullmatch(text)}


def _float_texts(code: KernelCode) -> list[str]:
    """The numbers with a point that the kernel has."""
    return sorted(
        {
            token.text
            for token in code.tokens.tokens
            if token.kind == "number" and not _WHOLE.fullmatch(token.text) and "x" not in token.text
        }
    )


def _fraction(code: KernelCode, position: int, known: list[str]) -> Iterator[SourceChange]:
    text = code.tokens.text(position)
    suffix = "f" if text[-1] in "fF" else ""
    value = float(text.rstrip("fFlL"))
    if value == 0:
        for infinity in INFINITIES:
            yield code.replaced(position, position, infinity, "float zero to infinity")
        for lowest in known:
            if float(lowest.rstrip("fFlL")) >= _LARGE:
                yield code.replaced(position, position, f"-{lowest}", "float zero to infinity")
    for other in (2 * value, value / 2, -value, value + 1, value - 1):
        if other != value:
            kind = "float doubled" if other in (2 * value, value / 2) else "float by one"
            yield code.replaced(position, position, f"{other!r}{suffix}", kind)
    for other_text in known:
        if other_text != text:
            yield code.replaced(position, position, other_text, "float of the kernel")
    for constant in _CONSTANTS:
        if _SAME < abs(value / constant - 1) < _NEAR:
            yield code.replaced(position, position, f"{constant!r}{suffix}", "known constant")
    for number, item in enumerate(code.visible(position, "float")):
        is_near = number < _NEAREST and not item.is_parameter
        kind = "name for a float, declared nearby" if is_near else "name for a float"
        yield code.replaced(position, position, item.name, kind)
        if value == 1:
            new = f"1.0f / {item.name}"
            yield code.replaced(position, position, new, "reciprocal for a float")
