"""Mistakes inside references that a test writes: what the first two findings say."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

ROOT_MEAN_SQUARE = OwnReference(
    "return x / x.square().mean(-1, keepdim=True).sqrt()",
    {"N": 12, "C": 40},
    {"x": ["N", "C"]},
    ["N", "C"],
)


def test_steps_are_found_in_a_task_of_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ROOT_MEAN_SQUARE.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = ROOT_MEAN_SQUARE.diagnosed(
        Path("own.yaml"), lambda x: x / x.square().mean(-1, keepdim=True)
    )
    assert "sqrt is missing" in first_words(found)


GROUP_NORM = OwnReference(
    "return torch.nn.functional.group_norm(x, 3, weight, bias)",
    {"N": 4, "C": 12, "P": 30},
    {"x": ["N", "C", "P"], "weight": ["C"], "bias": ["C"]},
    ["N", "C", "P"],
)
LOGSUMEXP = OwnReference(
    "return torch.logsumexp(x, dim=-1)", {"N": 64, "C": 50}, {"x": ["N", "C"]}, ["N"]
)
GATED = OwnReference(
    "return torch.nn.functional.silu(x) * gate",
    {"N": 16, "C": 50},
    {"x": ["N", "C"], "gate": ["N", "C"]},
    ["N", "C"],
)


INSTANCE_NORM = OwnReference(
    "return torch.nn.functional.instance_norm(x, weight=weight, bias=bias)",
    {"N": 4, "C": 6, "P": 30},
    {"x": ["N", "C", "P"], "weight": ["C"], "bias": ["C"]},
    ["N", "C", "P"],
)
CROSS_ENTROPY = OwnReference(
    "return torch.nn.functional.cross_entropy(x, y.long(), weight=weight, reduction='none',"
    " label_smoothing=0.1)",
    {"N": 40, "C": 50},
    {
        "x": ["N", "C"],
        "y": {"shape": ["N"], "dtype": "int32", "draw": {"dist": "uniform", "low": 0, "high": 50}},
        "weight": ["C"],
    },
    ["N"],
)
DILATED = OwnReference(
    "return torch.nn.functional.conv1d(x, weight, bias, padding=4, dilation=2)",
    {"B": 2, "C": 4, "O": 5, "T": 70},
    {"x": ["B", "C", "T"], "weight": ["O", "C", "5"], "bias": ["O"]},
    ["B", "O", "T"],
)


def instance_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """With an unbiased variance."""
    normal = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
    return normal * weight[:, None] + bias[:, None]


def cross_entropy(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Whose smoothing lacks the weights of the classes."""
    each = -x.log_softmax(-1)
    own = each.gather(1, y.long().unsqueeze(1)).squeeze(1) * weight[y.long()]
    return 0.9 * own + 0.1 * each.mean(-1)


def without_dilation(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv1d(x, weight, bias, padding=2)


def group_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, power: float = 0.5, taken: float = 1
) -> torch.Tensor:
    values = x.view(4, 3, -1)
    mean = values.mean(-1, keepdim=True)
    variance = (values - taken * mean).square().mean(-1, keepdim=True)
    normal = (values - mean) / (variance + 1e-5) ** power
    return normal.view(x.shape) * weight[:, None] + bias[:, None]


# reference, mutant, words that the first two findings must have
INSIDE: dict[str, tuple[OwnReference, Mutant, str]] = {
    "no root": (GROUP_NORM, lambda **given: group_norm(**given, power=1), "sqrt is missing"),
    "squares of what is not centred": (
        GROUP_NORM,
        lambda **given: group_norm(**given, taken=0),
        "mean is missing, never subtracted in deviations",
    ),
    "an unbiased variance of an instance": (INSTANCE_NORM, instance_norm, "divides by N - 1"),
    "a smoothing without weights": (
        CROSS_ENTROPY,
        cross_entropy,
        "weight is missing, never applied in each",
    ),
    "a dilation that is ignored": (DILATED, without_dilation, "dilation is ignored"),
    "maximum not added back": (
        LOGSUMEXP,
        lambda x: x.logsumexp(-1) - x.amax(-1),
        "maximum is missing, never added",
    ),
    "logarithm of base two": (
        LOGSUMEXP,
        lambda x: (x - x.amax(-1, keepdim=True)).exp().sum(-1).log2() + x.amax(-1),
        "as log2",
    ),
    "sigmoid in place of silu": (
        GATED,
        lambda x, gate: x.sigmoid() * gate,
        "sigmoid",
    ),
}


@of_some
@pytest.mark.parametrize("name", INSIDE)
def test_a_mistake_inside_a_function_of_torch_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = INSIDE[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))
