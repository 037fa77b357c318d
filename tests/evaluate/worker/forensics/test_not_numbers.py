"""What is NaN has a guess at its cause, where the reference has one."""

from __future__ import annotations

import math

import pytest
import torch

from tests.evaluate.worker.forensics.attention_mutants import attention
from tests.evaluate.worker.forensics.mutated import Mutant, diagnosed
from tests.evaluate.worker.forensics.own_reference import first_words


def rows_without_keys(tensors, scalars):
    """Rows 32 to 47 of 96 see no key of a part that begins with key 48."""
    out = attention(tensors, scalars)
    out[:, :, 32:48] = math.nan
    return out


def nothing_by_nothing(tensors, _scalars):
    return torch.full_like(tensors["x"], math.nan)


@pytest.mark.parametrize(("task", "case", "mutant", "words"), [
    ("sdpa_l4", "causal", rows_without_keys, "minus infinity less itself is NaN"),
    ("layernorm", "odd", nothing_by_nothing, "Probably 0 / 0, as where parts"),
])  # fmt: skip
def test_nan_has_a_cause_that_the_reference_suggests(
    task: str, case: str, mutant: Mutant, words: str
) -> None:
    assert words in first_words(diagnosed(task, case, mutant, seconds=4.0))


def test_without_a_mask_and_statistics_there_is_none() -> None:
    found = first_words(
        diagnosed("matmul_fp16", "flat", lambda t, s: t["a"] @ t["b"] * math.nan, seconds=4.0)
    )
    assert "NaN where finite values are expected" in found and "robably" not in found
