"""Mistakes in one branch of a function, or in all the places that use it, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

FEATURES = OwnReference(
    "a = torch.nn.functional.elu(q) + 1\nb = torch.nn.functional.elu(k) + 1\nreturn a @ b.T",
    {"M": 40, "N": 48, "K": 32}, {"q": ["M", "K"], "k": ["N", "K"]}, ["M", "N"],
)  # fmt: skip
SLOPED = OwnReference(
    "return torch.nn.functional.leaky_relu(x, 0.1) * 3 + y",
    {"M": 40, "K": 64}, {"x": ["M", "K"], "y": ["M", "K"]}, ["M", "K"],
)  # fmt: skip
GATES = OwnReference(
    "a = torch.sigmoid(x)\nb = torch.sigmoid(y)\nreturn a * y + b * x",
    {"M": 40, "K": 64}, {"x": ["M", "K"], "y": ["M", "K"]}, ["M", "K"],
)  # fmt: skip


def features(q: torch.Tensor, k: torch.Tensor, positive: float, negative: float) -> torch.Tensor:
    def of(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x + positive, x.exp() - 1 + negative)

    return of(q) @ of(k).T


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "positive": (
        FEATURES,
        lambda q, k: features(q, k, 0, 1),
        "1 is missing in the branch of positive values",
    ),
    "negative": (
        FEATURES,
        lambda q, k: features(q, k, 1, 0),
        "1 is missing in the branch of negative values",
    ),
    "both": (FEATURES, lambda q, k: features(q, k, 0, 0), "1 is missing, never added"),
    "without minus one": (
        FEATURES,
        lambda q, k: features(q, k, 1, 2),
        "1 is missing",
    ),
    "factor of one branch": (
        SLOPED,
        lambda x, y: torch.where(x > 0, x * 3, x * 0.1) + y,
        "3 is missing in the branch of negative values",
    ),
    "every gate": (
        GATES,
        lambda x, y: x.tanh() * y + y.tanh() * x,
        "sigmoid is computed wrongly, as tanh, in each of 2 places alike",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_branch_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
