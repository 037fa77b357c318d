"""An output whose values are right and in the wrong place: transposed, shifted, another layout.

Every rule maps the place of an element to the place in the reference whose value it would hold; it
is tried on a sample of the wrong elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun, plural
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.records import DiagnosisKind

SAMPLE = 8192
LEAST_SHARE = 0.6
SPOILED = 0.05  # of right elements, which a rule for all would have moved
PARTLY = (
    0.97  # a rule that holds only where the output is wrong comes behind one that holds for all
)
SHIFTS = (1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64)
MOST_ROWS = 4096  # among which the source of a row is looked for
SAMPLED_ROWS = 128
MOST_PLACED = 1 << 22  # elements of an output whose tiles are looked at
TILES = ((8, 8), (16, 8), (8, 16), (16, 16))

Places = list[torch.Tensor]  # one index an axis, each of shape (elements,)
Move = Callable[[Places], torch.Tensor]  # the flat index of the source, -1 where there is none


@dataclass(frozen=True)
class MoveRule:
    """One way to misplace values, in words."""

    words: str
    move: Move


def moved_leads(compared: ComparedOutput, hints: Sequence[int]) -> list[Lead]:
    """The rule that explains most wrong elements, if one explains enough."""
    shape = tuple(compared.value.shape)
    places = _sampled(compared.wrong)
    if places.numel() < 2 or not shape:
        return []
    value = compared.at(places)
    right_places = _sampled(~compared.bad)
    right, right_coordinates = compared.at(right_places), _coordinates(right_places, shape)
    best: Lead | None = None
    coordinates = _coordinates(places, shape)
    flat = compared.reference.flatten()
    scale = int(compared.wrong.sum()) / int(compared.bad.sum())
    for rule in _rules(shape, compared.axes, hints):
        source = rule.move(coordinates)
        known = source >= 0
        moved = source != places
        held = value.matches(flat[source.clamp_min(0)]) & known & moved
        own = float(held.double().mean())
        share = own * scale
        if (
            own > LEAST_SHARE
            and share > (best.share if best else 0.0)
            and _is_no_chance(value, flat[source.clamp_min(0)], own)
        ):
            source = rule.move(right_coordinates)
            kept = right.matches(flat[source.clamp_min(0)]) | (source < 0)
            holds = not right_places.numel() or float(kept.double().mean()) > 1 - SPOILED
            if not holds and best is not None and best.share > share - 0.05:
                continue
            best = Lead(
                DiagnosisKind.moved,
                f"{compared.name} holds right values in the wrong place: {rule.words}"
                f"{'' if holds else ', where it is wrong'}.",
                share if holds else share * PARTLY,
                1.0,
                {"move": rule.words},
            )
            if best.is_whole:
                return [best]
    if best is None:
        best = _found_rows(compared) or _found_places(compared)
    return [best] if best else []


def _is_no_chance(value: ComparedOutput, source: torch.Tensor, share: float) -> bool:
    """Whether the values match more often than other values of the same output would."""
    mixed = source[torch.arange(source.numel()).roll(max(1, source.numel() // 3 + 1))]
    return share - float(value.matches(mixed).double().mean()) > 0.3


def _sampled(wrong: torch.Tensor) -> torch.Tensor:
    """Flat indices of up to SAMPLE wrong elements, evenly spread."""
    places = wrong.flatten().nonzero().flatten()
    if places.numel() <= SAMPLE:
        return places
    # a step of its own, prime to periods of two, so that no residue is left out
    return places[torch.linspace(0, places.numel() - 1, SAMPLE).long()]


def _coordinates(places: torch.Tensor, shape: Sequence[int]) -> Places:
    found = []
    for extent in reversed(shape):
        found.append(places % extent)
        places = places // extent
    return found[::-1]


def _flat(coordinates: Sequence[torch.Tensor], shape: Sequence[int]) -> torch.Tensor:
    place = torch.zeros_like(coordinates[0])
    for one, extent in zip(coordinates, shape, strict=True):
        place = place * extent + one
    return place


def _rules(shape: tuple[int, ...], axes: Sequence[str], hints: Sequence[int]) -> Iterator[MoveRule]:
    yield from _swaps(shape, axes)
    shifts = dict.fromkeys([*SHIFTS, *hints, *(-hint for hint in hints)])
    for axis, extent in enumerate(shape):
        if extent < 2:
            continue
        yield from _along(shape, axis, axes, list(shifts))
    yield from _leading_dimensions(shape, axes, hints)


def _swaps(shape: tuple[int, ...], axes: Sequence[str]) -> Iterator[MoveRule]:
    dims = len(shape)
    for first in range(dims):
        for second in range(first + 1, dims):
            if min(shape[first], shape[second]) < 2:
                continue
            order = list(range(dims))
            order[first], order[second] = second, first
            swapped = [shape[axis] for axis in order]

            def layout(
                at: Places, order: list[int] = order, swapped: list[int] = swapped
            ) -> torch.Tensor:
                inner = _coordinates(_flat(at, shape), swapped)
                return _flat([inner[axis] for axis in order], shape)

            words = f"{axes[first]} and {axes[second]} are swapped{_nouns(axes, first, second)}"
            yield MoveRule(f"{words} in memory (transposed)", layout)
            if shape[first] == shape[second]:
                continue

            # the reference's own memory, read as if it were the other layout
            def inverse(
                at: Places, order: list[int] = order, swapped: list[int] = swapped
            ) -> torch.Tensor:
                return _flat([at[axis] for axis in order], swapped)

            yield MoveRule(f"{words}, read in the other layout", inverse)


def _nouns(axes: Sequence[str], first: int, second: int) -> str:
    """What they are called, unless that says no more: batches and heads."""
    return f", {plural(axis_noun(axes, first))} and {plural(axis_noun(axes, second))}"


def _along(
    shape: tuple[int, ...], axis: int, axes: Sequence[str], shifts: Sequence[int]
) -> Iterator[MoveRule]:
    extent, name = shape[axis], axes[axis]
    noun = axis_noun(axes, axis)
    many = plural(noun)

    def by(change: Callable[[torch.Tensor], torch.Tensor]) -> Move:
        def move(at: Places) -> torch.Tensor:
            moved = change(at[axis])
            inside = (moved >= 0) & (moved < extent)
            place = _flat([*at[:axis], moved.clamp(0, extent - 1), *at[axis + 1 :]], shape)
            return place.masked_fill(~inside, -1)

        return move

    for shift in shifts:
        if 0 < abs(shift) < extent:
            ahead = "ahead" if shift > 0 else "behind"
            words = f"each {noun} holds the one {abs(shift)} {ahead} along {name}, shifted"
            if abs(shift) == 1:
                which = "next" if shift > 0 else "previous"
                words = f"each {noun} holds the {which} {noun}, shifted by one along {name}"
            yield MoveRule(words, by(lambda at, shift=shift: (at + shift) % extent))  # type: ignore[misc]
    yield MoveRule(f"{many} are reversed along {name}", by(lambda at: extent - 1 - at))
    yield MoveRule(f"every {noun} holds the first {noun}, {name} = 0", by(torch.zeros_like))
    for period in (2, 4, 8, 16, 32, 64):
        if period <= extent:
            half = period // 2
            words = f"{many} are swapped, the halves of every {period} along {name}"
            if period == 2:
                words = f"neighbouring {many} are swapped, odd and even, in every pair along {name}"
            yield MoveRule(words, by(lambda at, p=period, h=half: at // p * p + (at + h) % p))  # type: ignore[misc]
            words = f"every {period} {many} along {name} are in reversed order"
            yield MoveRule(words, by(lambda at, p=period: at // p * p + p - 1 - at % p))  # type: ignore[misc]
            words = f"every {period} {many} along {name} repeat the first of them"
            yield MoveRule(words, by(lambda at, p=period: at // p * p))  # type: ignore[misc]
            if period < extent:
                words = f"{name} i holds {name} i % {period}"
                yield MoveRule(words, by(lambda at, p=period: at % p))  # type: ignore[misc]
                words = f"{name} i holds {name} i // {period}"
                yield MoveRule(words, by(lambda at, p=period: at // p))  # type: ignore[misc]
            if extent % period == 0 and period < extent:
                other = extent // period
                words = f"{many} are interleaved by {period} along {name}, in the wrong order"
                yield MoveRule(words, by(lambda at, p=period, o=other: at % p * o + at // p))  # type: ignore[misc]
    for small in range(2, min(extent, 9)):
        if small & (small - 1):
            yield MoveRule(f"{name} i holds {name} i // {small}", by(lambda at, s=small: at // s))  # type: ignore[misc]


def _leading_dimensions(
    shape: tuple[int, ...], axes: Sequence[str], hints: Sequence[int]
) -> Iterator[MoveRule]:
    """Rows written at another distance than they have: the flat place p holds row p // ld."""
    if len(shape) < 2:
        return
    columns = shape[-1]
    rows = shape[-2]
    wanted = {columns + more for more in (-16, -8, -4, -1, 1, 4, 8, 16)}
    wanted |= {columns * 2, columns // 2, rows, *hints, *shape[:-2]}
    for stride in sorted(wanted):
        if stride < 1 or stride == columns:
            continue

        def move(at: Places, stride: int = stride) -> torch.Tensor:
            place = at[-2] * columns + at[-1]
            row, column = place // stride, place % stride
            inside = (row < rows) & (column < columns)
            source = _flat(
                [*at[:-2], row.clamp_max(rows - 1), column.clamp_max(columns - 1)], shape
            )
            return source.masked_fill(~inside, -1)

        words = f"written with a leading dimension of {stride} in place of {columns} ({axes[-1]})"
        yield MoveRule(words, move)

        def read(at: Places, stride: int = stride) -> torch.Tensor:
            place = at[-2] * stride + at[-1]
            inside = place < rows * columns
            row, column = place // columns, place % columns
            source = _flat([*at[:-2], row.clamp_max(rows - 1), column], shape)
            return source.masked_fill(~inside, -1)

        words = f"copied with a leading dimension of {stride} in place of {columns} ({axes[-1]})"
        yield MoveRule(words, read)


def _found_rows(compared: ComparedOutput) -> Lead | None:
    """Rows that hold another row of the reference, wherever it is."""
    if compared.value.dim() < 2 or compared.value.shape[-1] < 8:
        return None
    columns = compared.value.shape[-1]
    value, reference = (
        tensor.reshape(-1, columns) for tensor in (compared.value, compared.reference)
    )
    if value.shape[0] > MOST_ROWS or value.shape[0] < 3:
        return None
    wrong = compared.wrong.reshape(-1, columns).double().mean(1)
    rows = (wrong > 0.3).nonzero().flatten()
    if rows.numel() < 2:
        return None
    rows = rows[torch.linspace(0, rows.numel() - 1, min(SAMPLED_ROWS, rows.numel())).long()]
    chosen = value[rows].nan_to_num(0, 0, 0)
    nearest = torch.cdist(chosen, reference.nan_to_num(0, 0, 0)).argmin(1)
    held = _row_matches(compared, rows, reference[nearest]) & (nearest != rows)
    share = float(held.double().mean())
    if share < LEAST_SHARE:
        return None
    pairs = [(int(row), int(source)) for row, source in zip(rows[held], nearest[held], strict=True)]
    differences = {source - row for row, source in pairs}
    if len(differences) == 1:
        step = differences.pop()
        words = f"each row holds the one {abs(step)} {'ahead' if step > 0 else 'behind'}"
    elif len({source for _, source in pairs}) == 1:
        words = f"these rows all hold row {pairs[0][1]}"
    else:
        shown = ", ".join(f"row {row} holds row {source}" for row, source in pairs[:3])
        words = f"rows are mixed up ({shown})"
    share *= int(compared.wrong.sum()) / int(compared.bad.sum())
    return Lead(
        DiagnosisKind.moved,
        f"{compared.name} holds right values in the wrong place: {words}.",
        share,
        0.95,
        {"rows": [list(pair) for pair in pairs[:8]]},
    )


def _row_matches(compared: ComparedOutput, rows: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    columns = other.shape[-1]
    places = (rows.view(-1, 1) * columns + torch.arange(columns)).flatten()
    matched = compared.at(places).matches(other.flatten()).view(-1, columns)
    return matched.double().mean(1) > 0.9


def _found_places(compared: ComparedOutput) -> Lead | None:
    """The same mixing of places in every tile: a fragment's layout."""
    if compared.value.dim() < 2 or compared.value.numel() > MOST_PLACED:
        return None
    rows, columns = compared.value.shape[-2:]
    for height, width in TILES:
        down, across = rows // height, columns // width
        if down * across < 4:
            continue

        def tiles(
            tensor: torch.Tensor, sizes: tuple[int, int, int, int] = (down, height, across, width)
        ) -> torch.Tensor:
            cut = tensor[..., : sizes[0] * sizes[1], : sizes[2] * sizes[3]]
            cut = cut.reshape(-1, *sizes).transpose(2, 3)
            return cut.reshape(-1, sizes[1] * sizes[3])[:64].T  # places by tiles

        value, reference = tiles(compared.value).nan_to_num(0, 0, 0), tiles(compared.reference)
        wrong = tiles(compared.wrong).double().mean(1) > 0.3
        if int(wrong.sum()) < 2 or not bool(reference.isfinite().all()):
            continue
        nearest = torch.cdist(value[wrong], reference).argmin(1)
        own = wrong.nonzero().flatten()
        limit = 3 * compared.gate.atol + 3 * compared.gate.rtol * reference[nearest].abs()
        near = ((value[wrong] - reference[nearest]).abs() <= limit).double().mean(1) > 0.9
        held = near & (nearest != own)
        share = float(held.double().mean())
        if share < LEAST_SHARE:
            continue
        pairs = [
            (divmod(int(place), width), divmod(int(source), width))
            for place, source in zip(own[held], nearest[held], strict=True)
        ]
        shown = ", ".join(f"{list(place)} holds {list(source)}" for place, source in pairs[:3])
        covered = math.prod((down, height, across, width)) / (rows * columns)
        return Lead(
            DiagnosisKind.fragment_layout,
            f"In every {height}x{width} tile of {compared.name} the same places are mixed up,"
            f" rows and columns in the order of another fragment layout: {shown}.",
            share * covered,
            1.0,
            {"tile": [height, width], "places": [[list(a), list(b)] for a, b in pairs[:8]]},
        )
    return None
