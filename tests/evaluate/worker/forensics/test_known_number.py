"""Names of numbers: the simplest one that fits."""

from __future__ import annotations

import pytest

from evoengine.evaluate.worker.forensics.known_number import names_of

NUMBERS = {"D": 64.0, "S": 512.0, "scale": 0.125, "BLOCK_N": 48.0, "the warps of a block": 8.0}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (32.0, "the warp size"),
        (1 / 32, "1/the warp size"),
        (64.0, "D"),
        (0.125, "scale"),
        (-48.0, "BLOCK_N"),
        (1 / 48, "1/BLOCK_N"),
        (22.627, "sqrt(S)"),
        (1.4427, "log2(e)"),
        (64 / 63, "D/(D - 1)"),
        (512 / 48, "S/BLOCK_N"),
    ],
)
def test_a_number_of_the_case_has_its_name(value: float, name: str) -> None:
    assert name in names_of(value, NUMBERS, 1e-4)


def test_no_number_has_the_name_of_one_that_is_only_near() -> None:
    assert names_of(65.0, NUMBERS, 1e-3) == ()
    assert names_of(0.0, NUMBERS, 1e-3) == ()
    assert names_of(float("nan"), NUMBERS, 1e-3) == ()


def test_a_small_whole_number_is_not_explained_by_a_quotient() -> None:
    assert names_of(2.0, {"M": 256.0, "N": 128.0}, 1e-3) == ()
