"""Values of formats that numpy lacks, and distances in units of the last place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.emulator.corpus import BITWISE, Case, Close, InOut, Ulp, difference, wrong
from tests.emulator.float_formats import bfloat16, distance, values


@pytest.mark.parametrize(
    ("dtype", "theirs"), [("float8_e4m3", torch.float8_e4m3fn), ("float8_e5m2", torch.float8_e5m2)]
)
def test_fp8_values_are_torchs(dtype: str, theirs: torch.dtype) -> None:
    bits = torch.arange(256, dtype=torch.uint8)
    np.testing.assert_array_equal(values(bits.numpy(), dtype), bits.view(theirs).double().numpy())


def test_bfloat16_is_torchs_both_ways() -> None:
    numbers = np.random.default_rng(0).standard_normal(5000).astype(np.float32) * 1e30
    theirs = torch.from_numpy(numbers).bfloat16()
    np.testing.assert_array_equal(bfloat16(numbers), theirs.view(torch.uint16).numpy())
    np.testing.assert_array_equal(values(bfloat16(numbers), "bfloat16"), theirs.double().numpy())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_neighbours_are_one_apart_across_zero_and_at_infinity(kind: type[np.floating]) -> None:
    least, most = np.finfo(kind).smallest_subnormal, np.finfo(kind).max
    one = np.array([-least, 0.0, 1.0, most, -np.inf, np.nan], kind)
    other = np.array([-0.0, least, np.nextafter(kind(1), kind(2)), np.inf, -most, np.nan], kind)
    assert distance(one, other, kind.__name__).tolist() == [1, 1, 1, 1, 1, 0]


def test_a_nan_agrees_with_no_number() -> None:
    nan, one = np.array([np.nan], np.float32), np.ones(1, np.float32)
    for agreement in (BITWISE, Ulp(1000), Close(atol=10, rtol=10)):
        assert not difference(agreement, "float32", nan, one).agrees
        assert difference(agreement, "float32", nan, -nan).agrees


def test_an_agreement_in_ulp_is_for_its_own_dtype_only() -> None:
    one = np.array([1.0], np.float16)
    other = np.nextafter(one, np.float16(2))
    assert difference(Ulp(1, "float16"), "float16", one, other).agrees
    assert not difference(Ulp(1, "float32"), "float16", one, other).agrees
    assert not difference(Close(atol=9), "int32", np.array([1]), np.array([2])).agrees


def test_an_exact_case_names_a_wrong_element_and_its_index() -> None:
    case = Case(
        "x",
        "k",
        (1, 1, 1),
        (1, 1, 1),
        (InOut(np.zeros(3, np.int32)),),
        {0: np.array([1, 2, 3], np.int32)},
    )
    assert wrong(case, 0, np.array([1, 2, 3], np.int32)) == ""
    assert "1 of 3 wrong, first [1]" in wrong(case, 0, np.array([1, 5, 3], np.int32))
