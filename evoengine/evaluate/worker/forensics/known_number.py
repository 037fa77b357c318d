"""Names for a number that a wrong output shows: a ratio, an offset, a period."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

MOST_NAMES = 3
LARGEST_PLAIN = 4
CONSTANTS = {
    "log2(e)": math.log2(math.e),
    "ln(2)": math.log(2),
    "sqrt(2)": math.sqrt(2),
    "sqrt(2/pi)": math.sqrt(2 / math.pi),
    "pi": math.pi,
    "e": math.e,
}
WARP = "the warp size"


def names_of(value: float, numbers: Mapping[str, float], tolerance: float) -> tuple[str, ...]:
    """The names of a number, the simplest ones first: "the warp size", "sqrt(D)", "1/scale".

    `numbers` are the quantities of a case by name: its dimensions, scalars, tunables, extents of
    launches. `tolerance` is relative. The sign is not looked at.
    """
    if not value or not math.isfinite(value):
        return ()
    found: dict[str, None] = {}
    rank_found = None
    for rank, name, known in _candidates(abs(value), numbers):
        if rank_found is not None and rank > rank_found:
            break
        if known and math.isfinite(known) and abs(abs(value) / abs(known) - 1) <= tolerance:
            found[name] = None
            rank_found = rank
    return tuple(found)[:MOST_NAMES]


def _candidates(value: float, numbers: Mapping[str, float]) -> Iterator[tuple[int, str, float]]:
    """Rank, name and value of every quantity that is tried, in the order of ranks."""
    plain = {name: abs(number) for name, number in numbers.items() if number and abs(number) != 1}
    yield 0, WARP, 32.0
    for name, number in plain.items():
        yield 0, name, number
    yield 1, f"1/{WARP}", 1 / 32
    for name, number in plain.items():
        yield 1, f"1/{name}", 1 / number
        yield 1, f"sqrt({name})", math.sqrt(number)
        yield 1, f"1/sqrt({name})", 1 / math.sqrt(number)
        yield 1, f"{name} squared", number * number
    for name, number in CONSTANTS.items():
        yield 1, name, number
        yield 1, f"1/{name}", 1 / number
    for name, number in plain.items():
        if number > 1 and number == int(number):
            yield 2, f"{name}/({name} - 1)", number / (number - 1)
            yield 2, f"({name} - 1)/{name}", (number - 1) / number
    if any(
        abs(one - round(one)) < 1e-3 and round(one) <= LARGEST_PLAIN for one in (value, 1 / value)
    ):
        return  # a small whole number needs no name
    for name, number in plain.items():
        for other, divisor in plain.items():
            if name != other:
                yield 3, f"{name}/{other}", number / divisor
                if name < other:
                    yield 3, f"{name}*{other}", number * divisor
                    yield 4, f"2*{name}*{other}", 2 * number * divisor
