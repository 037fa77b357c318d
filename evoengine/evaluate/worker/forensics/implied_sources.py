"""What a statistic was taken of, from what it must have been: another row, several rows, another
tensor, or divided by another number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

LEAST_ROWS = 6
FITTED = 0.15  # of the squared difference that may be left
EXACT = 2e-3  # of it, where a number was fitted
GROUPS = (2, 4, 8, 16, 32, 64)
NOTHING = 1e-6  # of the power of a statistic: what has less is 0
NEAR_NUMBER = 2e-3
MOST_REPEATED = 0.25  # of the rows
Rows = torch.Tensor  # float64 of shape (rows,)


@dataclass(frozen=True, eq=False)
class StatisticSource:
    """A guess at what a statistic is; `words` follow its name."""

    words: str
    value: Rows
    cost: float = 1.0  # more where a number was fitted, which comes near to anything


def sources(
    right: Rows,
    implied: Rows,
    count: int,
    numbers: Mapping[str, float],
    others: Mapping[str, Rows],
) -> Iterator[StatisticSource]:
    """Guesses that come near to what is implied. `count` is the number of terms, `numbers` are
    those of the case by name, `others` other statistics of the same rows by name.
    """
    if right.numel() < LEAST_ROWS or not bool((right.isfinite() & implied.isfinite()).all()):
        return
    power = float((implied - right).square().sum())
    for one in (
        *_constant(right, implied, count, numbers),
        *_factors(right, implied, count, numbers),
        *_functions(right),
        *_of_rows(right),
        *_others(others),
        *_sums(right, implied, count, others),
    ):
        if float((implied - one.value).square().sum()) <= FITTED * power:  # never so for NaN
            yield one
    found = _matched(right, implied)
    if found is not None:
        yield found


def _constant(
    right: Rows, implied: Rows, count: int, numbers: Mapping[str, float]
) -> Iterator[StatisticSource]:
    """One whole number in every row, where rows differ: such as the number of all elements."""
    if float(implied.square().sum()) <= NOTHING * float(right.square().sum()):
        yield StatisticSource(
            "is 0 in every row: it is missing (never added or subtracted)", torch.zeros_like(right)
        )
        return
    value = float(implied.median())
    near = float((implied - value).abs().quantile(0.9)) <= NEAR_NUMBER * abs(value)
    if not near or round(value) < 1 or abs(value - round(value)) > NEAR_NUMBER * value:
        return
    known = {**numbers, "the number of all elements, those that must not count among them": count}
    named = [name for name, one in known.items() if one == round(value)]
    what = f" ({' or '.join(named[-2:])})" if named else ""
    yield StatisticSource(
        f"is {round(value)}{what} in every row: a constant, not what is counted (or added) in each"
        " row",
        torch.full_like(right, round(value)),
    )


def _factors(
    right: Rows, implied: Rows, count: int, numbers: Mapping[str, float]
) -> Iterator[StatisticSource]:
    norm = float(right.square().sum())
    factor = float((right * implied).sum()) / norm if norm else 0.0
    if factor <= 0:
        if factor < -NEAR_NUMBER:
            yield StatisticSource(
                "has the wrong sign (its term is subtracted in place of added, or the reverse)",
                factor * right,
            )
        return
    divisor = count / factor
    named = [
        name for name, value in numbers.items() if abs(value - divisor) <= NEAR_NUMBER * divisor
    ]
    power = float((implied - right).square().sum())
    is_exact = float((implied - factor * right).square().sum()) <= EXACT * power
    near = abs(divisor - round(divisor)) <= NEAR_NUMBER * max(1.0, divisor)
    # some whole number is near any large one
    if near and round(divisor) != count and (named or is_exact):
        by = f"{named[0]} ({round(divisor)})" if named else f"{round(divisor)}"
        yield StatisticSource(
            f"is divided by the wrong number: by {by} in place of {count}"
            f"{_rounded_up(count, round(divisor))}"
            f"{' (not divided: a sum in place of a mean)' if round(divisor) == 1 else ''}",
            factor * right,
        )
    whole = factor if factor > 1 else 1 / factor
    # about 1 is the right value; any other number is fitted, and no cause
    if round(whole) > 1 and abs(whole - round(whole)) <= NEAR_NUMBER * whole:
        times = f"{round(whole)} times" if factor > 1 else f"one part in {round(whole)} of"
        yield StatisticSource(f"is {times} what it should be, in every row", factor * right)


def _rounded_up(count: int, divisor: int) -> str:
    for size in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
        if -(-count // size) * size == divisor:
            return f" (rounded up to a multiple of {size}, the padding is counted)"
    return ""


def _functions(right: Rows) -> Iterator[StatisticSource]:
    yield StatisticSource("is squared (applied twice)", right.square())
    if bool((right >= 0).all()):
        yield StatisticSource("is its square root: a root too many", right.sqrt())
    else:
        yield StatisticSource("is its magnitude, without sign", right.abs())
    yield StatisticSource("is missing, taken as 0", 0 * right)


def _of_rows(right: Rows) -> Iterator[StatisticSource]:
    """Of another row by a rule, or of several rows together."""
    rows = right.numel()
    at = torch.arange(rows)
    yield StatisticSource("is taken from the next row", right.roll(-1))
    yield StatisticSource("is taken from the previous row", right.roll(1))
    yield StatisticSource(
        "is taken from the neighbouring row, even and odd rows exchanged", right[(at ^ 1) % rows]
    )
    yield StatisticSource("is taken from the rows in reverse order", right.flip(0))
    yield StatisticSource("is taken from the first row for all rows", right[:1].expand(rows))
    yield StatisticSource("is taken from the last row for all rows", right[-1:].expand(rows))
    for size in GROUPS:
        if size >= rows:
            break
        start = at // size * size
        end = (start + size - 1).clamp(max=rows - 1)
        yield StatisticSource(
            f"is taken from another row, that of the first of every {size} rows", right[start]
        )
        yield StatisticSource(
            f"is taken from another row, that of the last of every {size} rows", right[end]
        )
        yield StatisticSource(
            f"is read at the wrong index: that of row i % {size}", right[at % size]
        )
        yield StatisticSource(
            f"is read at the wrong index: that of row i // {size}", right[at // size]
        )
        group = at // size
        number = int(group[-1]) + 1
        sums = right.new_zeros(number).index_add_(0, group, right)
        sizes = torch.bincount(group, minlength=number)
        yield StatisticSource(
            f"is added up over every {size} rows together: several rows share one sum",
            sums[group],
        )
        yield StatisticSource(f"is the mean over every {size} rows together", (sums / sizes)[group])
        most = right.new_full((number,), -torch.inf).scatter_reduce_(0, group, right, "amax")
        yield StatisticSource(
            f"is the largest of every {size} rows together: several rows share it", most[group]
        )
        running = right.cumsum(0)
        before = torch.where(start > 0, running[(start - 1).clamp(min=0)], torch.zeros(1).double())
        yield StatisticSource(
            f"is not set back (reset) between the rows of every {size}: each row adds to the sum of"
            " the rows before",
            running - before,
        )
    yield StatisticSource(
        "is not set back (reset) between rows: each row adds to the sum of the rows before",
        right.cumsum(0),
    )


def _others(others: Mapping[str, Rows]) -> Iterator[StatisticSource]:
    for name, value in others.items():
        yield StatisticSource(f"is {name}", value)


def _sums(
    right: Rows, implied: Rows, count: int, others: Mapping[str, Rows]
) -> Iterator[StatisticSource]:
    """A constant, or a part of another statistic, added to it."""
    ones = torch.ones_like(right)
    known: list[tuple[str, Rows, bool]] = [("", ones, True)]
    known += [(name, value, False) for name, value in others.items()]
    known += [(f"the square of {name}", value.square(), False) for name, value in others.items()]
    for name, value, is_one in known:
        norm = float(value.square().sum())
        if not norm or not math.isfinite(norm):
            continue
        factor = float(((implied - right) * value).sum()) / norm
        sign = "-" if factor < 0 else "+"
        is_whole = round(factor) != 0 and abs(factor - round(factor)) < 1e-3
        padded = factor * count
        is_padding = not is_one and padded > 0.5 and abs(padded - round(padded)) < 0.01
        if not (is_whole or is_padding):
            continue  # a fitted number is no cause
        if is_one:
            words = f"is off by {factor:.4g} in every row: it begins at {factor:.4g}, not at 0"
        else:
            words = f"is off by {sign} {abs(factor):.3g} times {name}"
            if is_padding:
                words += f", as if {round(padded)} zeros of padding beyond the end of a row counted"
        yield StatisticSource(words, right + factor * value, 2.0)


def _matched(right: Rows, implied: Rows) -> StatisticSource | None:
    """Another row's value for each, by value alone."""
    spread = float(right.std())
    if spread == 0 or right.numel() > 4096 or _repeats(right, spread):
        return None
    gaps = (implied[:, None] - right[None, :]).abs()
    nearest = gaps.argmin(1)
    at = torch.arange(right.numel())
    held = (gaps[at, nearest] <= 1e-3 * spread) & (nearest != at)
    changed = (implied - right).abs() > 1e-2 * spread
    if not bool(changed.any()) or float((held & changed).sum()) < 0.9 * float(changed.sum()):
        return None
    value = torch.where(changed, right[nearest], right)
    rows: Sequence[int] = changed.nonzero().flatten()[:3].tolist()
    shown = ", ".join(f"row {row} takes that of row {int(nearest[row])}" for row in rows)
    return StatisticSource(f"is taken from another row ({shown})", value)


def _repeats(right: Rows, spread: float) -> bool:
    """Whether many rows have the value of another one, as counts do: any value is found then."""
    gaps = right.sort().values.diff()
    return float((gaps <= 2e-3 * spread).double().mean()) > MOST_REPEATED


def of_other_tensors(
    tensors: Mapping[str, torch.Tensor], terms: torch.Tensor
) -> Iterator[tuple[str, Rows]]:
    """Statistics that a kernel may take in place of the right one: of other tensors of the shape of
    `terms` (rows, extent), by name.
    """
    made: Mapping[str, Callable[[torch.Tensor], Rows]] = {
        "the mean of {}": lambda one: one.mean(1),
        "the mean of the squares of {} (no mean subtracted)": lambda one: one.square().mean(1),
        "the square of the mean of {}": lambda one: one.mean(1).square(),
        "the variance of {}": lambda one: one.var(1, unbiased=False),
        "the standard deviation of {}": lambda one: one.std(1, unbiased=False),
        "the sum of {}": lambda one: one.sum(1),
        "the sum of the magnitudes of {}": lambda one: one.abs().sum(1),
        "the mean of the magnitudes of {}": lambda one: one.abs().mean(1),
        "the largest of {}": lambda one: one.amax(1),
        "the largest magnitude of {}": lambda one: one.abs().amax(1),
        "the smallest of {}": lambda one: one.amin(1),
        "the first element of {}": lambda one: one[:, 0],
    }
    for name, value in tensors.items():
        if value.shape == terms.shape:
            for words, function in made.items():
                yield words.format(name), function(value)
