"""Steps in another order, and values that are quantised wrongly, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import gelu

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

ACTIVATED = OwnReference(
    "return torch.nn.functional.gelu(x @ w + bias) * scale",
    {"M": 24, "N": 20, "K": 16},
    {"x": ["M", "K"], "w": ["K", "N"], "bias": ["N"], "scale": ["N"]},
    ["M", "N"],
)
SPREAD = OwnReference(
    "variance = x.square().mean(-1, keepdim=True)\nreturn x / (variance + 0.1).sqrt()",
    {"N": 16, "C": 30},
    {"x": ["N", "C"]},
    ["N", "C"],
)
MOMENT = OwnReference(
    "m = 0.5 * m + 0.5 * x\nreturn x * x - m",
    {"N": 400},
    {"m": ["N"], "x": ["N"]},
    ["N"],
)


def unscaled(x: torch.Tensor) -> torch.Tensor:
    """Rows in e4m3's range whose scales are forgotten."""
    return x / (x.abs().amax(-1, keepdim=True) / 448.0)


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "bias after the activation": (
        ACTIVATED,
        lambda x, w, bias, scale: (gelu(x @ w) + bias) * scale,
        "bias is added after gelu, not before it",
    ),
    "scale before the activation": (
        ACTIVATED,
        lambda x, w, bias, scale: gelu((x @ w + bias) * scale),
        "scale is multiplied before gelu, not after it",
    ),
    "outside of the root": (
        SPREAD,
        lambda x: x / (x.square().mean(-1, keepdim=True).sqrt() + 0.1),
        "is added outside of the root, not inside",
    ),
    "old moment": (
        MOMENT,
        lambda m, x: x * x - m,
        "the old value of m, before its update, is used",
    ),
    "scale of 8 bits forgotten": (
        ACTIVATED,
        lambda x, w, bias, scale: gelu(unscaled(x) @ w + bias) * scale,
        "the quantised (8-bit, e4m3) x is never multiplied by the scale",
    ),
    "saturated": (
        ACTIVATED,
        lambda x, w, bias, scale: gelu(x.clamp(-1, 1) @ w + bias) * scale,
        "x saturates: values above 1 are clipped",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_order_or_scale_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
