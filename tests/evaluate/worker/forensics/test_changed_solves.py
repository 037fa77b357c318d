"""Triangular systems that are solved wrongly are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

BODY = "eye = torch.eye(a.shape[-1], dtype=a.dtype)\nmatrix = a / 8 + 2 * eye\n"
LOWER = OwnReference(
    BODY + "return torch.linalg.solve_triangular(matrix, b, upper=False)",
    {"N": 64, "R": 20}, {"a": ["N", "N"], "b": ["N", "R"]}, ["N", "R"],
)  # fmt: skip
UPPER = OwnReference(
    BODY + "return torch.linalg.solve_triangular(matrix, b, upper=True)",
    {"N": 64, "R": 20}, {"a": ["N", "N"], "b": ["N", "R"]}, ["N", "R"],
)  # fmt: skip
AT = torch.arange(64)


def solved(a: torch.Tensor, b: torch.Tensor, counted: Mutant, upper: bool) -> torch.Tensor:
    """By substitution; `counted` says which of the unknowns known so far count for a row."""
    matrix = a / 8 + 2 * torch.eye(64, dtype=a.dtype)
    x = torch.zeros_like(b)
    for row in reversed(range(64)) if upper else range(64):
        known = (row < AT if upper else row > AT) & counted(torch.tensor(row), AT)
        x[row] = (b[row] - (matrix[row] * known) @ x) / matrix[row, row]
    return x


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "the row before": (
        LOWER,
        lambda a, b: solved(a, b, lambda row, at: at != row - 1, False),
        "the unknown solved just before (the previous row) is left out",
    ),
    "the row before, from the end": (
        UPPER,
        lambda a, b: solved(a, b, lambda row, at: at != row + 1, True),
        "the unknown solved just before (the previous row) is left out",
    ),
    "earlier blocks": (
        LOWER,
        lambda a, b: solved(a, b, lambda row, at: at // 16 == row // 16, False),
        "unknowns of earlier blocks (tiles of 16) are left out",
    ),
    "inside of a block": (
        LOWER,
        lambda a, b: solved(a, b, lambda row, at: at // 8 != row // 8, False),
        "inside of a block of 8 the products with unknowns solved before are left out",
    ),
    "no division": (
        LOWER,
        lambda a, b: torch.linalg.solve_triangular(
            a / 8 + 2 * torch.eye(64, dtype=a.dtype), b, upper=False, unitriangular=True
        ),
        "the division by the diagonal of matrix is missing",
    ),
    "stride": (
        LOWER,
        lambda a, b: solved(a, b, lambda row, at: (row - at - 1) // 16 % 2 == 0, False),
        "passes over every second group of 16 rows",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_substitution_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
