"""Where an output is wrong: which indices of each axis, and in what pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from evoengine.evaluate.worker.forensics.axis_words import amount, axis_noun, plural

HIT_SHARE = 0.05  # of the most hit index's share of wrong elements: less counts as not hit
PERIODS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
FRAGMENTS = ((8, 8), (16, 8), (8, 16), (16, 16), (32, 32), (64, 64))
SPARSE = 0.02
REGULAR = 0.4  # of all tiles have an error at a place that is part of a pattern


@dataclass(frozen=True)
class AxisPart:
    """The indices of one axis at which elements are wrong.

    `kind` is all, one, first (from 0 on), last (up to the end), range, period (`start` to `stop` of
    every `period`) or some.
    """

    axis: str
    extent: int
    kind: str
    start: int = 0
    stop: int = 0
    period: int = 0
    hit: int = 0
    noun: str = "index"  # what one index is called: row, column, head

    @property
    def is_scattered(self) -> bool:
        """Whether the indices follow no rule and are many."""
        return self.kind == "some" and self.hit > 4

    @property
    def words(self) -> str:
        """The indices in words; "" for all."""
        count = self.stop - self.start
        span = f"{self.start}" if count == 1 else f"{self.start}..{self.stop - 1}"
        if self.kind == "all":
            return ""
        if self.kind == "one":
            return f"only {self.noun} {self.axis} = {self.start}"
        if self.kind == "first":
            return (
                f"only the first {amount(count, self.noun)} of {self.extent} along {self.axis}"
                f" ({span})"
            )
        if self.kind == "last":
            what = amount(count, self.noun) if count > 1 else self.noun
            return f"only the last {what} of {self.extent} along {self.axis} ({span})"
        if self.kind == "range":
            return f"only {plural(self.noun)} {self.axis} {span} of {self.extent}"
        if self.kind == "period":
            every = f"({span}) of every {self.period} along {self.axis}"
            if self.stop == self.period:
                return f"at the last {self._some(count)} {every}"
            if self.start == 0:
                return f"at the first {self._some(count)} {every}"
            return f"at {plural(self.noun)} {span} of every {self.period} along {self.axis}"
        return f"{amount(self.hit, self.noun)} of {self.extent} along {self.axis}, scattered"

    def _some(self, count: int) -> str:
        return amount(count, self.noun) if count > 1 else self.noun


@dataclass(frozen=True)
class ErrorRegion:
    """Where elements are wrong: along each axis, and in a pattern over the last two."""

    parts: tuple[AxisPart, ...]
    share: float  # of all elements
    density: float  # of those at the hit indices of all axes
    pattern: str = ""
    blocks: tuple[int, int] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every axis is hit everywhere, without a pattern."""
        return all(part.kind == "all" for part in self.parts) and not self.pattern

    @property
    def words(self) -> str:
        """One phrase: `only the last 13 of 77 along S (64..76)`, or `everywhere`."""
        said = [part.words for part in self.parts if part.words and not part.is_scattered]
        if self.pattern:
            said.append(self.pattern)
        if not said:
            if self.share > 0.9:
                return "everywhere"
            return f"at {self.share:.2g} of all elements, scattered over the whole output"
        return ", ".join(said)

    @property
    def evidence(self) -> dict[str, str]:
        """The parts by axis, as words."""
        found = {part.axis: part.words or "all" for part in self.parts}
        return found | ({"pattern": self.pattern} if self.pattern else {})


def error_region(
    wrong: torch.Tensor, axes: Sequence[str], hints: Sequence[int] = ()
) -> ErrorRegion:
    """The region of the elements that `wrong`, bool of any shape, names.

    `hints` are further periods to try, such as tile sizes. A tensor without dimensions is whole.
    """
    share = float(wrong.double().mean()) if wrong.numel() else 0.0
    parts = []
    within = wrong
    for axis, name in enumerate(axes):
        others = [other for other in range(wrong.dim()) if other != axis]
        shares = wrong.double().mean(dim=others) if others else wrong.double()
        hit = shares > HIT_SHARE * float(shares.max())
        parts.append(replace(axis_part(name, hit, hints), noun=axis_noun(axes, axis)))
        within = within.index_select(axis, hit.nonzero().flatten()) if bool(hit.any()) else within
    density = float(within.double().mean()) if within.numel() else 0.0
    pattern, blocks = "", None
    if wrong.dim() >= 2 and density < 0.9:
        pattern, blocks = _pattern(wrong, axes)
    return ErrorRegion(tuple(parts), share, density, pattern, blocks)


def axis_part(name: str, hit: torch.Tensor, hints: Sequence[int] = ()) -> AxisPart:
    """The part of one axis that `hit`, bool of shape (extent,), names."""
    extent = hit.numel()
    places = hit.nonzero().flatten()
    count = places.numel()
    if count in (0, extent):
        return AxisPart(name, extent, "all", 0, extent, hit=count)
    start, stop = int(places[0]), int(places[-1]) + 1
    if stop - start == count:
        kind = "one" if count == 1 else "range"
        if stop == extent:
            kind = "last"
        elif start == 0 and count > 1:
            kind = "first"
        return AxisPart(name, extent, kind, start, stop, hit=count)
    for period in sorted({*PERIODS, *hints}):
        if not 2 <= period <= extent // 2:
            continue
        if bool((hit[period:] == hit[:-period]).all()):
            inside = hit[:period].nonzero().flatten()
            first, last = int(inside[0]), int(inside[-1]) + 1
            if last - first == inside.numel():
                return AxisPart(name, extent, "period", first, last, period, hit=count)
    return AxisPart(name, extent, "some", start, stop, hit=count)


def _pattern(wrong: torch.Tensor, axes: Sequence[str]) -> tuple[str, tuple[int, int] | None]:
    """A pattern over the last two axes: a triangle, the same places of each tile, whole tiles."""
    rows, columns = wrong.shape[-2:]
    planes = wrong.reshape(-1, rows, columns).double().mean(0)
    if rows > 2 and columns > 2:
        row, column = torch.arange(rows).view(-1, 1), torch.arange(columns).view(1, -1)
        for words, inside in (
            ("above the diagonal", column > row),
            ("on and below the diagonal", column <= row),
            ("below the diagonal", column < row),
            ("on the diagonal", column == row),
        ):
            if float(planes[inside].mean()) > 0.5 and float(planes[~inside].mean()) < SPARSE:
                return f"only {words} of {axes[-2]} and {axes[-1]}", None
    for height, width in reversed(FRAGMENTS):
        down, across = rows // height, columns // width
        if down * across < 4:
            continue
        tiles = planes[: down * height, : across * width].reshape(down, height, across, width)
        per_tile = tiles.mean((1, 3))
        hit = per_tile > HIT_SHARE * float(per_tile.max())
        share = float(hit.double().mean())
        if share <= 0.75 and float(per_tile[hit].mean()) > 0.8:
            return (
                f"whole {height}x{width} tiles of {axes[-2]} and {axes[-1]}, {int(hit.sum())} of"
                f" {hit.numel()}{_arrangement(hit)}",
                (height, width),
            )
    for height, width in FRAGMENTS:
        down, across = rows // height, columns // width
        if down * across < 4:
            continue
        tiles = planes[: down * height, : across * width].reshape(down, height, across, width)
        folded = tiles.mean((0, 2))
        strong = folded > 0.5 * float(folded.max())
        if (
            0 < int(strong.sum()) < strong.numel()
            and float(folded[strong].mean()) > REGULAR
            and float(folded[~strong].max()) < 0.1 * float(folded.max())
        ):
            places = int(strong.sum())
            return (
                f"the same {places} places of every {height}x{width} tile of {axes[-2]} and"
                f" {axes[-1]}",
                (height, width),
            )
    return "", None


def _arrangement(hit: torch.Tensor) -> str:
    """How tiles lie, where that is simple."""
    down, across = hit.shape
    row, column = torch.arange(down).view(-1, 1), torch.arange(across).view(1, -1)
    for words, inside in (
        (", those on the diagonal", row == column),
        (", every other one", (row + column) % 2 == 1),
        (", every other one", (row + column) % 2 == 0),
        (", those above the diagonal", column > row),
        (", those below the diagonal", column < row),
    ):
        if torch.equal(hit, inside):
            return words
    return ""
