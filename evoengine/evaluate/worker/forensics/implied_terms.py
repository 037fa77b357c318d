"""Which terms of a sum are missing or counted too often, from what the sums of rows must be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.summed_terms import SPLITS

PERIODS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MOST_BOUNDS = 160  # places at which a range of terms may begin or end
LARGEST_DIVISOR = 65  # of an extent, such as the taps of a filter, that is tried as a period
SPLIT_MULTIPLES = (1, 2, 8, 16)  # of which the length of a split may be one
PARTS = 16  # of a period, at which a span in it may begin or end
LEAST_ROWS = 4  # fewer sums fit some range by chance
FEW_ROWS, FEW_FITTED = 16, 1e-3  # so few fit many ranges nearly
FITTED = 0.1  # of the squared difference that may be left
CLEAR = 1e-4  # what is left less than this is as good as nothing
WHOLE_NUMBER = 0.04  # from one, for a count


@dataclass(frozen=True)
class CountedTerms:
    """Terms that are added `times` times in place of once: those of a range, or `start` to `stop`
    of every `period`, of the first one too unless it `spares_first`.
    """

    start: int
    stop: int
    extent: int
    period: int
    times: float
    left: float  # of the squared difference
    spares_first: bool = False

    def weights(self) -> torch.Tensor:
        """How often each term is added, float64 of shape (extent,)."""
        at = torch.arange(self.extent, dtype=torch.float64)
        inside = at % self.period if self.period else at
        chosen = (inside >= self.start) & (inside < self.stop)
        if self.spares_first:
            chosen &= at >= self.period
        return torch.where(chosen, float(round(self.times)) if self.is_count else self.times, 1.0)

    @property
    def is_count(self) -> bool:
        """Whether a loop could add them so many times."""
        return abs(self.times - round(self.times)) < WHOLE_NUMBER and self.times > -0.5

    def words(self, noun: str) -> str:
        """`leaves out the last 8 elements (492..499 of 500)`."""
        count = self.stop - self.start
        span = f"{self.start}" if count == 1 else f"{self.start}..{self.stop - 1}"
        many = noun if count == 1 else f"{noun}s"
        if self.period:
            half = (count, self.period) == (16, 32)
            warp = " (half a warp)" if half else ""
            if (self.start, count) == (0, 32):
                warp = " (those of the first warp)"
            which = f"{many} {span} of every {self.period}{warp}"
            if self.spares_first:
                which += " but the first, as parts (splits) that run into the next one do,"
        elif self.start == 0:
            which = (
                f"the first {f'{count} {many}' if count > 1 else many} ({span} of {self.extent})"
            )
        elif self.stop == self.extent:
            which = f"the last {f'{count} {many}' if count > 1 else many} ({span} of {self.extent})"
        else:
            which = f"{many} {span} of {self.extent}{_tile(self.start, count, noun)}"
        if round(self.times, 1) == 0:
            return f"leaves out {which}"
        if abs(self.times - 2) < WHOLE_NUMBER:
            return f"adds {which} twice"
        if abs(self.times - round(self.times)) < WHOLE_NUMBER * self.times and self.times > 1:
            return f"adds {which} {round(self.times)} times"
        if abs(self.times + 1) < WHOLE_NUMBER:
            return f"subtracts {which}, with the wrong sign"
        return f"weighs {which} by {self.times:.3g} in place of 1"


def _tile(start: int, count: int, noun: str) -> str:
    """Which tile, where the range is one."""
    if count in PERIODS and start % count == 0:
        warp = " (one warp)" if count == 32 and noun == "element" else ""
        return f", number {start // count} of the tiles of {count}{warp}"
    return ""


def counted_terms(
    terms: torch.Tensor,
    difference: torch.Tensor,
    hints: Sequence[int] = (),
    fitted: float = FITTED,
) -> CountedTerms | None:
    """The terms, float64 (rows, extent), that explain `difference` (rows,) of their plain sums, as
    one range or one span of every period; at most `fitted` of its square is left.
    """
    rows, extent = terms.shape
    power = float(difference.square().sum())
    if rows < LEAST_ROWS or extent < 2 or power == 0:
        return None
    found: list[tuple[float, CountedTerms]] = []
    for cost, start, stop, period, sums in (*_choices(terms, hints), *_overlaps(terms)):
        norms = sums.square().sum(0)
        factors = (sums * difference[:, None]).sum(0) / norms.clamp_min(1e-300)
        left = 1 - factors.square() * norms / power
        times = factors + 1
        rank = left.clamp_min(CLEAR) * _strangeness(times) * cost
        at = int(rank.argmin())
        one = CountedTerms(
            int(start[at]),
            int(stop[at]),
            extent,
            abs(period),
            float(times[at]),
            float(left[at]),
            spares_first=period < 0,
        )
        found.append((float(rank[at]), one))
    best = min(found, key=lambda pair: pair[0])[1] if found else None
    if rows < FEW_ROWS:
        fitted = min(fitted, FEW_FITTED)
    if best is None or best.left > fitted:
        return None
    whole = abs(best.times - round(best.times)) < WHOLE_NUMBER
    if not whole and best.left > max(CLEAR * 10, fitted / 10):
        return None  # any number fits some range a little
    return best


def _strangeness(times: torch.Tensor) -> torch.Tensor:
    """1 for a count; more for what no loop would do."""
    whole = (times - times.round()).abs() < WHOLE_NUMBER
    return torch.where(whole & (times > -0.5), 1.0, 8.0)


def _choices(
    terms: torch.Tensor, hints: Sequence[int]
) -> Iterator[tuple[float, torch.Tensor, torch.Tensor, int, torch.Tensor]]:
    """Cost, starts and stops of ranges, their period, and the sums over each (rows, choices)."""
    rows, extent = terms.shape
    bounds = _bounds(extent, hints)
    yield 1.0, *_ranges(terms, bounds, 0)
    divisors = [size for size in range(2, min(extent, LARGEST_DIVISOR)) if extent % size == 0]
    for period in dict.fromkeys((*PERIODS, *hints, *divisors)):
        if not 2 <= period < extent:
            continue
        padded = torch.nn.functional.pad(terms, (0, -extent % period))
        folded = padded.view(rows, -1, period).sum(1)
        step = max(1, period // PARTS)
        inner = sorted({*range(0, period + 1, step), 1, period - 1})
        yield 1.5, *_ranges(folded, inner, period)


def _overlaps(
    terms: torch.Tensor,
) -> Iterator[tuple[float, torch.Tensor, torch.Tensor, int, torch.Tensor]]:
    """As _choices: the first terms of every part but the first, the negative length of a part for
    its period.
    """
    rows, extent = terms.shape
    lengths = {
        _rounded_up(-(-extent // parts), whole) for parts in SPLITS for whole in SPLIT_MULTIPLES
    }
    for length in sorted(lengths):
        if not 2 <= length < extent:
            continue
        padded = torch.nn.functional.pad(terms, (0, -extent % length))
        folded = padded.view(rows, -1, length)[:, 1:].sum(1)
        stops = torch.arange(1, length)
        yield 2.0, torch.zeros_like(stops), stops, -length, folded.cumsum(1)[:, :-1]


def _rounded_up(number: int, whole: int) -> int:
    return -(-number // whole) * whole


def _bounds(extent: int, hints: Sequence[int]) -> list[int]:
    """Beginnings and ends of tiles, as fine as is quick, and those at both ends of a row."""
    ends = {0, 1, 2, 3, 4, 8, extent, extent - 1, extent - 2, extent - 3, extent - 4, extent // 2}
    ends |= {extent // size * size for size in (*PERIODS, *hints) if size < extent}
    step = 1
    while extent // step > MOST_BOUNDS:
        step *= 2
    ends |= set(range(0, extent, step))
    return sorted(end for end in ends if 0 <= end <= extent)


def _ranges(
    terms: torch.Tensor, bounds: Sequence[int], period: int
) -> tuple[torch.Tensor, torch.Tensor, int, torch.Tensor]:
    places = torch.tensor(bounds)
    sums = torch.nn.functional.pad(terms.cumsum(1), (1, 0)).index_select(1, places)
    first, last = torch.triu_indices(len(bounds), len(bounds), 1)
    whole = (places[last] - places[first]) < terms.shape[1]  # all terms are a factor
    first, last = first[whole], last[whole]
    return places[first], places[last], period, sums[:, last] - sums[:, first]
