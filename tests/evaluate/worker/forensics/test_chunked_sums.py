"""Sums up to the own position whose chunks are joined wrongly are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

BODY = (
    "weights = (q.exp() @ k.exp().T).tril()\n"
    "return weights @ v / weights.sum(-1, keepdim=True)"
)  # fmt: skip
LINEAR = OwnReference(
    BODY, {"S": 96, "D": 16}, {"q": ["S", "D"], "k": ["S", "D"], "v": ["S", "D"]}, ["S", "D"]
)
PRODUCT = OwnReference(
    "return (a @ b) + 1", {"M": 40, "N": 48, "K": 128}, {"a": ["M", "K"], "b": ["K", "N"]},
    ["M", "N"], {"atol": 2e-4, "rtol": 2e-5, "rel_rmse": 1e-5},
)  # fmt: skip
APART = (torch.arange(96) // 16).unsqueeze(1) - (torch.arange(96) // 16)


def linear(above: torch.Tensor, below: torch.Tensor) -> Mutant:
    """Each element of the weights counted so often in the numerator, and in the denominator."""

    def mutant(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = (q.exp() @ k.exp().T).tril()
        return (weights * above) @ v / (weights * below).sum(-1, keepdim=True)

    return mutant


ALL = torch.ones(96, 96)
PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "no state": (LINEAR, linear(APART == 0, APART == 0), "the state (the carry) is missing"),
    "state overwritten": (LINEAR, linear(APART <= 1, ALL), "overwritten by each chunk"),
    "sums forgotten": (LINEAR, linear(ALL, APART <= 1), "(a denominator, normaliser) has the own"),
    "state too late": (LINEAR, linear(APART != 1, APART != 1), "lacks the chunk just before"),
    "state too early": (LINEAR, linear(1 + (APART == 0).long(), ALL), "the own chunk twice"),
    "last tile": (
        PRODUCT,
        lambda a, b: a[:, 96:] @ b[96:] + 1,
        "adds the last tile of 32 products (or its rest) only",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_state_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))
