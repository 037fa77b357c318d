"""Rules by which right values come to stand in the wrong place.

Every rule maps the place of an element to the place in the reference whose value it would hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun, plural

LEAST_BLOCK = 8
SHIFTS = (1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64)

Places = list[torch.Tensor]  # one index an axis, each of shape (elements,)
Move = Callable[[Places], torch.Tensor]  # the flat index of the source, -1 where there is none


@dataclass(frozen=True)
class MoveRule:
    """One way to misplace values, in words."""

    words: str
    move: Move
    is_of_all: bool = False  # whether it says nothing where it holds for some elements alone


def coordinates_of(places: torch.Tensor, shape: Sequence[int]) -> Places:
    """The index of each axis for flat indices."""
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


def move_rules(
    shape: tuple[int, ...], axes: Sequence[str], hints: Sequence[int]
) -> Iterator[MoveRule]:
    """All rules for an output of this shape, the likelier ones first."""
    yield from _swaps(shape, axes)
    shifts = dict.fromkeys([*SHIFTS, *hints, *(-hint for hint in hints)])
    for axis, extent in enumerate(shape):
        if extent < 2:
            continue
        yield from _along(shape, axis, axes, list(shifts))
    yield from _crosswise(shape)
    yield from _turned_tiles(shape)
    yield from _exchanged_blocks(shape, hints)
    yield from _diagonal_blocks(shape, hints)
    yield from _leading_dimensions(shape, axes, hints)


def _crosswise(shape: tuple[int, ...]) -> Iterator[MoveRule]:
    """The two tiles off the diagonal of every four in each other's place."""
    if len(shape) < 2:
        return
    for tile in (16, 8, 32, 64):
        if min(shape[-2:]) < 2 * tile:
            continue

        def move(at: Places, tile: int = tile) -> torch.Tensor:
            row, column = at[-2], at[-1]
            crossed = row // tile % 2 != column // tile % 2
            turn = torch.where(row // tile % 2 == 0, tile, -tile)
            row, column = row + crossed * turn, column - crossed * turn
            return _inside([*at[:-2], row, column], shape)

        words = (
            f"of every four {tile}x{tile} tiles (fragments) the two off the diagonal are exchanged,"
            " rows of tiles taken for columns"
        )
        yield MoveRule(words, move)


def _turned_tiles(shape: tuple[int, ...]) -> Iterator[MoveRule]:
    """Each tile in its place, transposed."""
    if len(shape) < 2:
        return
    for tile in (16, 8, 4, 32, 64):
        if min(shape[-2:]) < tile:
            continue

        def move(at: Places, tile: int = tile) -> torch.Tensor:
            row = at[-2] // tile * tile + at[-1] % tile
            column = at[-1] // tile * tile + at[-2] % tile
            return _inside([*at[:-2], row, column], shape)

        words = (
            f"every {tile}x{tile} tile (fragment) is transposed in its place, rows and columns"
            " exchanged"
        )
        yield MoveRule(words, move, is_of_all=True)


def _block_sizes(shape: tuple[int, ...], hints: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Heights and widths of tiles of which the last two axes have several."""
    if len(shape) < 2:
        return
    sizes = dict.fromkeys((*(one for one in hints if one >= LEAST_BLOCK), 64, 32, 128, 16))
    for height, width in itertools.product(sizes, sizes):
        if shape[-2] > height or shape[-1] > width:
            yield height, width


def _exchanged_blocks(shape: tuple[int, ...], hints: Sequence[int]) -> Iterator[MoveRule]:
    """Tile (i, j) in the place of tile (j, i)."""
    for height, width in _block_sizes(shape, hints):

        def move(at: Places, height: int = height, width: int = width) -> torch.Tensor:
            row = at[-1] // width * height + at[-2] % height
            column = at[-2] // height * width + at[-1] % width
            return _inside([*at[:-2], row, column], shape)

        words = (
            f"tile (i, j) of {height}x{width} holds tile (j, i): the indices of the block along"
            " rows and columns (blockIdx.x and blockIdx.y) are exchanged"
        )
        yield MoveRule(words, move)


def _diagonal_blocks(shape: tuple[int, ...], hints: Sequence[int]) -> Iterator[MoveRule]:
    """Tile (i, j) with what belongs to the same place along rows as along columns, or the reverse:
    what is loaded for one axis is taken from where the block lies along the other.
    """
    for height, width in _block_sizes(shape, hints):

        def columns(at: Places, height: int = height, width: int = width) -> torch.Tensor:
            column = at[-2] // height * height + at[-1] % width
            return _inside([*at[:-1], column], shape)

        def rows(at: Places, height: int = height, width: int = width) -> torch.Tensor:
            row = at[-1] // width * width + at[-2] % height
            return _inside([*at[:-2], row, at[-1]], shape)

        tile = f"each tile of {height}x{width} holds the values of"
        yield MoveRule(
            f"{tile} the columns that begin where its rows do: what is read for its columns is"
            " taken at the row of the block (the first row of the tile is used in place of its"
            " first column, blockIdx.y for blockIdx.x)",
            columns,
        )
        yield MoveRule(
            f"{tile} the rows that begin where its columns do: what is read for its rows is taken"
            " at the column of the block (the first column of the tile is used in place of its"
            " first row, blockIdx.x for blockIdx.y)",
            rows,
        )


def _inside(at: Places, shape: tuple[int, ...]) -> torch.Tensor:
    """The flat index, -1 beyond the last rows and columns."""
    row, column = at[-2], at[-1]
    known = (row < shape[-2]) & (column < shape[-1])
    rows, columns = row.clamp_max(shape[-2] - 1), column.clamp_max(shape[-1] - 1)
    return _flat([*at[:-2], rows, columns], shape).masked_fill(~known, -1)


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
                inner = coordinates_of(_flat(at, shape), swapped)
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
            if period == 2:
                words = (
                    f"of every two neighbouring {many} along {name} the second holds the same as"
                    " the first"
                )
            yield MoveRule(words, by(lambda at, p=period: at // p * p))  # type: ignore[misc]
            if period < extent:
                words = (
                    f"every {period} {many} along {name} repeat the first {period}, the same again"
                    f" ({name} i holds {name} i % {period})"
                )
                yield MoveRule(words, by(lambda at, p=period: at % p))  # type: ignore[misc]
                same = f"{name} i holds {name} i // {period}"
                words = f"each {noun} is repeated {period} times: {same}"
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
