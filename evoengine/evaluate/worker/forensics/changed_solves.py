"""Triangular systems of which a kernel takes some coefficients wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

SIZES = (16, 32, 8, 64, 4, 2)
# (row, column, distance from the diagonal) -> which coefficients count
Counted = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def changed_solves(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that solves triangular systems."""
    if step.name not in ("solve_triangular", "linalg_solve_triangular"):
        return
    named = step.operand(0) or "the matrix"
    yield change(
        step,
        f"with {named} transposed in {step.words}",
        lambda f, a, k: f(a[0].mT, *a[1:], **k),
        1.02,
        f"{named} is read transposed: the other triangle is used",
    )
    yield change(
        step,
        f"with a diagonal of one in {step.words}",
        lambda f, a, k: f(*a, **{**k, "unitriangular": True}),
        1.02,
        f"the division by the diagonal of {named} is missing",
    )
    yield change(
        step,
        f"with each unknown divided by the diagonal twice in {step.words}",
        lambda f, a, k: f(*a, **k) / a[0].diagonal(dim1=-2, dim2=-1).unsqueeze(-1),
        1.0,
        f"the division by the diagonal of {named} is done twice",
    )
    yield _counted(
        step,
        "without the coefficients beside the diagonal",
        "the product with the unknown solved just before (the previous row) is left out of each"
        " sum, off by one",
        lambda row, column, apart: apart != 1,
    )
    yield _counted(
        step,
        "without the first column",
        "the product with the first unknown is left out of each sum, off by one",
        lambda row, column, apart: (column > 0) | (apart == 0),
    )
    for size in dict.fromkeys((*tiles, *SIZES)):
        for words, mistake, counted in _of_blocks(size):
            yield _counted(step, words, mistake, counted)


def _of_blocks(s: int) -> Iterator[tuple[str, str, Counted]]:
    """Words, mistake and the coefficients that count, of blocks of `s` rows."""
    yield (
        f"of which rows at a distance of {s}..{2 * s - 1} of every {2 * s} from"
        " the diagonal do not count",
        f"the update of the rows below passes over every second group of {s} rows: the"
        f" stride of its loop is {2 * s}, not {s}, so that they miss products with"
        " the solved row",
        lambda row, column, apart: (apart == 0) | ((apart - 1) // s % 2 == 0),
    )
    yield (
        f"of which only the first {s} rows below the diagonal count",
        f"only the first {s} rows below a solved one are updated: the others miss the"
        " product with it (a loop over them is missing)",
        lambda row, column, apart: apart <= s,
    )
    yield (
        f"of which only blocks of {s} on the diagonal count",
        f"the products with the unknowns of earlier blocks (tiles of {s}) are left out",
        lambda row, column, apart: row // s == column // s,
    )
    yield (
        f"of which blocks of {s} on the diagonal count by their diagonal alone",
        f"inside of a block of {s} the products with unknowns solved before are left out",
        lambda row, column, apart: (row // s != column // s) | (apart == 0),
    )
    yield (
        f"of which only the last block of {s} before each row's own counts beside it",
        f"only the block (tile of {s}) just before counts in each sum: the products with"
        " the unknowns of earlier blocks are lost",
        lambda row, column, apart: row // s - column // s <= 1,
    )


def _counted(step: ReferenceStep, words: str, mistake: str, counted: Counted) -> ChangedStep:
    return change(step, f"{words} in {step.words}", _masked(counted), 1.0, mistake)


def _masked(counted: Counted) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        matrix = args[0]
        at = torch.arange(matrix.shape[-1], device=matrix.device)
        row, column = at.unsqueeze(1), at.unsqueeze(0)
        if kwargs.get("upper"):  # solved from the last row on
            row, column = row.flip(0), column.flip(1)
        kept = counted(row, column, row - column)
        triangle = row >= column
        if bool((kept | ~triangle).all()):
            raise ValueError("no change")
        return func(matrix * kept, *args[1:], **kwargs)

    return instead
