"""Single instructions, on special and random operands, against a model in Python's integers
and fractions.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evoengine.emulator.device import Emulator
from tests.emulator.instruction_launch import launched
from tests.emulator.instructions import CASES, Case, disagreements, expected, inputs_of, shown

EVERY = 5  # of the table, where the way to the same code is the same for whole families
FEW = 23


@cache
def emulator(*without: str) -> Emulator:
    """One emulator for all tests, and one for hosts with fewer CPU features."""
    return Emulator("h200", threads=1, without=without)


def name_of(case: Case) -> str:
    return case.name


def operation_of(case: Case) -> str:
    return case.name.partition(".")[0]


# conversions, comparisons, ... each of them in every sample
of_a_sample = pytest.mark.sampled("case", one_in=24, kind=operation_of)


def agrees(case: Case, got: np.ndarray) -> None:
    want = expected(case)
    wrong = disagreements(case, got, want)
    assert not wrong, (
        f"{len(wrong)} of {len(want)} wrong:"
        f" {[shown(case, place, got, want) for place in wrong[:3]]}"
    )


@of_a_sample
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_an_instruction_gives_what_its_model_says(case: Case) -> None:
    agrees(case, launched(emulator(), case))


@of_a_sample
@pytest.mark.parametrize("case", CASES[::EVERY], ids=name_of)
def test_uniform_operands_give_the_same_results(case: Case) -> None:
    agrees(case, launched(emulator(), case, uniform=True))


@pytest.mark.sampled("case", one_in=12)
@pytest.mark.parametrize("case", CASES[::FEW], ids=name_of)
def test_a_host_without_avx512_gives_the_same_results(case: Case) -> None:
    agrees(case, launched(emulator("avx512"), case))


def test_every_case_has_its_own_name_and_operands_of_its_types() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES[::FEW]:
        assert len({len(array) for array in inputs_of(case)}) == 1
        assert len(inputs_of(case)) == len(case.sources)


def test_a_wrong_result_does_not_pass_for_a_right_one() -> None:
    for name in (
        "add.s32",
        "add.rn.f32",
        "setp.lt.s32",
        "cvt.rn.f16x2.f32",
        "fma.rn.f16x2",
        "ex2.approx.f32",
        "cvt.rna.tf32.f32",
    ):
        case = next(case for case in CASES if case.name == name)
        right = expected(case)
        wrong = right.copy()
        wrong[5] ^= right.dtype.type(0x4000 if case.result != "pred" else 1)
        assert disagreements(case, wrong, right) == [5]
