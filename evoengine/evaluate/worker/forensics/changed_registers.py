"""Factors, sums and vectors that registers of a fragment take for another row or column.

A lane has four results of a 16 x 8 tile of mma: register e is in row `e / 2 * 8` and column `e % 2`
of its own. Where an epilogue takes `e % 2` for `e / 2`, or one row for both, half of the elements
get what belongs to the row eight above or below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.softmax_weights import finite
from evoengine.records import DiagnosisKind

TILES = (32, 64, 16, 128)
MOST_SIZES = 4
HEIGHT, WIDTH = 16, 8
LARGEST = 1 << 20

Places = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (rows, columns) -> another one


@dataclass(frozen=True)
class _Mixed:
    """Which row or column is taken in each place, in words."""

    words: str
    places: Places


ROWS = (
    _Mixed(
        "of the row eight above or below in every second column (e % 2 in place of e / 2: rows and"
        " columns of a fragment's registers are mixed up)",
        lambda r, c: r - r % 16 // 8 * 8 + c % 2 * 8,
    ),
    _Mixed(
        "of the row eight above in the second half (8..15) of every 16 rows (the first half of a"
        " fragment's rows in place of both)",
        lambda r, c: r - r % 16 // 8 * 8,
    ),
    _Mixed(
        "of the row eight below in the first half (0..7) of every 16 rows (the second half of a"
        " fragment's rows in place of both)",
        lambda r, c: r + (1 - r % 16 // 8) * 8,
    ),
    _Mixed(
        "of the other half of every 16 rows (the halves of a fragment's rows are exchanged)",
        lambda r, c: r + (1 - r % 16 // 8) * 8 - r % 16 // 8 * 8,
    ),
)
COLUMNS = (
    _Mixed(
        "of the column that the half of a fragment's rows says (e / 2 in place of e % 2: rows and"
        " columns of its registers are mixed up)",
        lambda r, c: c - c % 2 + r % 16 // 8,
    ),
    _Mixed("of the first of every two columns for both", lambda r, c: c - c % 2),
    _Mixed(
        "of the column that the lane's row says (lane / 4 in place of lane % 4 * 2)",
        lambda r, c: c - c % 8 + r % 8,
    ),
    _Mixed(
        "of a column of the first eight (the offset of the tile is missing)",
        lambda r, c: c % 8,
    ),
)


def changed_registers(
    steps: Sequence[ReferenceStep], tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of products behind a softmax, and of steps that take one value for each row or
    column.
    """
    yield from _of_attention(steps, tiles)
    for step in steps:
        if step.name in BINARY:
            yield from _of_vectors(step)


def _of_vectors(step: ReferenceStep) -> Iterator[ChangedStep]:
    for number in (0, 1):
        name = step.operand(number) or "the operand"
        for axis, kinds in ((0, ROWS), (1, COLUMNS)):
            for mixed in kinds:
                yield change(
                    step,
                    f"with {name} {mixed.words} in {step.words}",
                    _reading(number, axis, mixed.places),
                    0.99,
                    f"{name} is that {mixed.words}",
                )


def _reading(number: int, axis: int, places: Places) -> Instead:
    """A step one of whose operands has one value for each row (axis 0) or column (axis 1)."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if len(args) <= number or not isinstance(args[number], torch.Tensor):
            raise ValueError("no operand")
        right = func(*args, **kwargs)
        given = args[number]
        if right.dim() < 2 or right.shape[-2] < HEIGHT or right.shape[-1] < WIDTH:
            raise ValueError("no fragment")
        own = given.shape[-2 + axis] if given.dim() >= 2 - axis else 1
        other = given.shape[-1 - axis] if given.dim() >= 1 + axis else 1
        if own != right.shape[-2 + axis] or other != 1:
            raise ValueError("no vector")
        row, column = _coordinates(right)
        at = places(row, column).clamp(0, own - 1)
        picked = (at, column) if axis == 0 else (row, at)
        taken = given.expand(right.shape)[(..., *picked)]
        made = [taken if place == number else one for place, one in enumerate(args)]
        return func(*made, **kwargs)

    return instead


def _coordinates(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The row and the column of each element of the last two axes."""
    rows, columns = value.shape[-2:]
    row = torch.arange(rows, device=value.device).unsqueeze(1).expand(rows, columns)
    return row, torch.arange(columns, device=value.device).expand(rows, columns)


def _of_attention(steps: Sequence[ReferenceStep], tiles: Sequence[int]) -> Iterator[ChangedStep]:
    before: ReferenceStep | None = None
    for step in steps:
        if step.name == "softmax":
            before = step
        elif step.name == "matmul" and before is not None:
            for mixed in ROWS:
                hold, use = _divided(mixed.places)
                yield ChangedStep(
                    DiagnosisKind.changed_step,
                    f"divided by the sum {mixed.words} in {step.words}",
                    {before.place: hold, step.place: use},
                    1.0,
                    mistake=f"the results are divided by the sum (the denominator) of another row:"
                    f" the total {mixed.words}",
                    of_whole=True,
                )
            for tile in dict.fromkeys((*tiles[:MOST_TILES], *TILES)):
                yield from _of_tile(before, step, tile)
            before = None


def _of_tile(before: ReferenceStep, step: ReferenceStep, tile: int) -> Iterator[ChangedStep]:
    wrong = "the accumulators (sums of earlier tiles) are rescaled by the factor"
    for mixed in ROWS:
        hold, use = _rescaled(mixed.places, tile)
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"in tiles of {tile}, rescaled by the factor {mixed.words} in {step.words}",
            {before.place: hold, step.place: use},
            1.0,
            mistake=f"{wrong} of another row when the maximum grows: that {mixed.words}",
            of_whole=True,
        )
    for half, which in ((1, "second half (8..15)"), (0, "first half (0..7)")):
        hold, use = _rescaled(None, tile, half)
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"in tiles of {tile}, not rescaled in the {which} of every 16 rows in {step.words}",
            {before.place: hold, step.place: use},
            1.0,
            mistake="the accumulators (sums of earlier tiles) are not rescaled when the maximum"
            f" grows in half of a fragment's rows: it is missing in the {which} of every 16",
            of_whole=True,
        )


def _divided(places: Places) -> tuple[Instead, Instead]:
    """A softmax, and a product of its weights that is divided by the sum of other rows."""
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        held[:] = [found.amax(-1)]  # one over the sum, relative to the own maximum
        return found

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        _refuse(found, held[0].shape[-1])
        row, column = _coordinates(found)
        at = places(row, column).clamp(0, found.shape[-2] - 1)
        inverse = held[0]
        return found * inverse[..., at] / inverse.unsqueeze(-1)

    return hold, use


def _rescaled(places: Places | None, tile: int, half: int = 0) -> tuple[Instead, Instead]:
    """A softmax, and a product whose sums of earlier tiles are rescaled by factors of other rows;
    without `places` they are not rescaled in one half of every 16 rows.
    """
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        scores = args[0]
        if scores.shape[-1] <= tile:
            raise ValueError("one tile")
        parts = [part.amax(-1) for part in scores.split(tile, -1)]
        running = torch.stack(parts, -1).cummax(-1).values
        factor = (finite(running) - finite(running[..., -1:])).clamp(-700, 0)
        held[:] = [factor.repeat_interleave(tile, -1)[..., : scores.shape[-1]]]
        return func(*args, **kwargs)

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        own = held[0]
        if own.shape != args[0].shape:
            raise ValueError("other weights")
        _refuse(right, own.shape[-2])
        row, column = _coordinates(right)
        if places is None:
            partner = torch.zeros_like(own)
            wrong = row % HEIGHT // 8 == half
        else:
            rows = torch.arange(own.shape[-2], device=own.device)
            flipped = (rows + 8 - rows % HEIGHT // 8 * 16).clamp(0, own.shape[-2] - 1)
            partner = own[..., flipped, :]
            wrong = places(row, column).clamp(0, own.shape[-2] - 1) != row
        mixed = func(args[0] * (partner - own).exp(), *args[1:], **kwargs)
        return torch.where(wrong, mixed, right)

    return hold, use


def _refuse(value: torch.Tensor, rows: int) -> None:
    """Raises ValueError where a product has no fragments of its own rows."""
    if value.dim() < 2 or value.shape[-2] != rows or rows < HEIGHT or value.shape[-1] < WIDTH:
        raise ValueError("no fragment")
    if value.numel() > LARGEST:
        raise ValueError("too large")
