from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.emulator.narrow_formats import BFLOAT16, E4M3, E5M2, HALF, Format, special_floats, tf32

MODES = ("rn", "rz", "ru", "rd")


def _wide() -> np.ndarray:
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        scaled = (rng.standard_normal(5000) * np.exp2(rng.integers(-40, 40, 5000))).astype(
            np.float32
        )
    return np.concatenate([special_floats(), scaled])


@pytest.mark.parametrize("form", [HALF, BFLOAT16, E4M3, E5M2])
def test_every_value_keeps_its_code_in_every_rounding_mode(form: Format) -> None:
    codes = np.concatenate([np.arange(len(form.values)), np.arange(len(form.values)) | form.sign])
    for mode in MODES:
        assert (form.encode(form.decode(codes), mode) == codes).all()


def test_nearest_halves_are_those_of_numpy() -> None:
    x = _wide()
    with np.errstate(over="ignore"):
        theirs = x.astype(np.float16).view(np.uint16)
    number = ~np.isnan(x)
    assert (HALF.encode(x)[number] == theirs[number]).all()


def test_nearest_bfloat16_and_e5m2_are_those_of_torch() -> None:
    x = _wide()
    x = x[~np.isnan(x)]
    for form, dtype, bits in (
        (BFLOAT16, torch.bfloat16, torch.int16),
        (E5M2, torch.float8_e5m2, torch.int8),
    ):
        theirs = torch.from_numpy(x).to(dtype).view(bits).numpy().view(form.dtype)
        assert (form.encode(x) == theirs).all()


def test_nearest_e4m3_are_those_of_torch_within_its_range() -> None:
    x = _wide()
    x = x[np.abs(x) <= 448]
    theirs = torch.from_numpy(x).to(torch.float8_e4m3fn).view(torch.int8).numpy().view(np.uint8)
    assert (E4M3.encode(x) == theirs).all()


@pytest.mark.parametrize("form", [HALF, BFLOAT16, E4M3, E5M2])
def test_directed_modes_enclose_the_number(form: Format) -> None:
    x = _wide().astype(np.float64)
    x = x[np.abs(x) < form.largest]
    down, up, toward = (form.rounded(x, mode) for mode in ("rd", "ru", "rz"))
    assert (down <= x).all() and (x <= up).all()
    assert (toward == np.where(x < 0, up, down)).all()


def test_overflow_is_infinity_where_there_is_one_and_the_largest_when_saturated() -> None:
    assert HALF.encode(np.array([65520.0, -1e9])).tolist() == [0x7C00, 0xFC00]
    assert E4M3.encode(np.array([464.0, 465.0, np.inf])).tolist() == [0x7E, 0x7F, 0x7F]
    assert E4M3.encode(np.array([465.0, -np.inf]), saturate=True).tolist() == [0x7E, 0xFE]
    assert E5M2.encode(np.array([1e9]), saturate=True).tolist() == [0x7B]


def test_tf32_keeps_ten_bits_and_rounds_ties_away() -> None:
    x = np.array([1 + 2.0**-11, 1 + 2.0**-12, -(1 + 2.0**-11), 3.0], np.float32)
    assert tf32(x).tolist() == [1 + 2.0**-10, 1.0, -(1 + 2.0**-10), 3.0]
