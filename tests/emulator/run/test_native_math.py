"""math.c and call.c against float64, numpy's and Python's functions, and mpmath where there are
none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evoengine.emulator.run.native import EMULATOR
from tests.emulator.run.native_lanes import Runtime

mpmath = pytest.importorskip("mpmath")  # comes with torch

EDGES = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        1e-45,
        -1e-45,
        1.1754944e-38,
        3.4028235e38,
        -3.4028235e38,
    ],
    np.float32,
)


def dense(low: float, high: float, count: int = 20000) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.concatenate([np.linspace(low, high, count), rng.uniform(low, high, count)]).astype(
        np.float32
    )


def magnitudes(signs: bool = True) -> np.ndarray:
    """Floats of every exponent."""
    bits = np.arange(0, 0x7F800000, 104729, dtype=np.uint32)
    positive = bits.view(np.float32)
    return np.concatenate([positive, -positive]) if signs else positive


def ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in ulps of the exact result, including subnormal ones; non-finite results
    must agree.
    """
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded) & np.isfinite(got)
    edge = np.abs(exact) >= 3.4028234e38  # one place from infinity either is right
    assert np.array_equal(got[~finite & ~edge], rounded[~finite & ~edge], equal_nan=True)
    place = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    return float(np.max(np.abs(got[finite].astype(np.float64) - exact[finite]) / place))


def vectorised(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.array([function(float(value)) for value in x])


UNARY = {
    "ev_ex2_approx_f32": (np.exp2, dense(-152, 130), 1.0),
    "ev_call_exp2f": (np.exp2, dense(-152, 130), 1.0),
    "ev_call_expf": (np.exp, dense(-105, 90), 1.0),
    "ev_call_logf": (np.log, magnitudes(False), 1.0),
    "ev_lg2_approx_f32": (np.log2, magnitudes(False), 2.0),
    "ev_call_log2f": (np.log2, dense(0.5, 2.0), 2.0),
    "ev_tanh_approx_f32": (np.tanh, np.concatenate([dense(-11, 11), magnitudes()]), 2.0),
    "ev_call_tanhf": (np.tanh, dense(-1, 1), 2.0),
    "ev_call_erff": (vectorised(math.erf), dense(-5, 5, 5000), 2.0),
    "ev_call_sinf": (np.sin, np.concatenate([dense(-10, 10), dense(-1e5, 1e5)]), 2.0),
    "ev_call_cosf": (np.cos, np.concatenate([dense(-10, 10), dense(-1e5, 1e5)]), 2.0),
    "ev_sin_approx_f32": (np.sin, dense(-1e30, 1e30, 1000), 1.0),
    "ev_rcp_approx_f32": (lambda x: 1.0 / x, magnitudes()[1:], 0.5),
    "ev_sqrt_approx_f32": (np.sqrt, magnitudes(False), 0.5),
    "ev_rsqrt_approx_f32": (lambda x: 1.0 / np.sqrt(x), magnitudes(False), 1.5),
}


@pytest.mark.parametrize("name", UNARY)
def test_float_functions_are_as_close_as_lanes_h_says(runtime: Runtime, name: str) -> None:
    exact, samples, limit = UNARY[name]
    x = np.concatenate([samples, EDGES])
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64))
        got = runtime.lanes(name, np.float32, x)
        error = ulps(got, wanted)
    assert error <= limit, f"{name}: {error} ulp"


def test_ftz_forms_flush_arguments_and_results_and_keep_signs(runtime: Runtime) -> None:
    x = np.array([1e-40, -1e-40, -126.5, -130.0, 2e38, -2e38], np.float32)
    assert runtime.lanes("ev_ex2_approx_ftz_f32", np.float32, x)[2:4].tolist() == [0.0, 0.0]
    assert runtime.lanes("ev_rcp_approx_ftz_f32", np.float32, x)[:2].tolist() == [np.inf, -np.inf]
    flushed = runtime.lanes("ev_rcp_approx_ftz_f32", np.float32, x)[4:]
    assert flushed.tolist() == [0.0, 0.0] and np.signbit(flushed).tolist() == [False, True]
    assert runtime.lanes("ev_rcp_approx_f32", np.float32, x)[4] > 0
    assert runtime.lanes("ev_lg2_approx_ftz_f32", np.float32, x)[0] == -np.inf


def test_a_nan_of_an_approximate_instruction_is_the_canonical_one(runtime: Runtime) -> None:
    x = np.array([np.nan, -1.0], np.float32)
    for name in ("rsqrt", "sqrt", "lg2", "ex2"):
        got = runtime.lanes(f"ev_{name}_approx_f32", np.float32, x).view(np.uint32)
        assert got[0] == 0x7FFFFFFF and (name == "ex2" or got[1] == 0x7FFFFFFF)


def test_approximations_of_double_ignore_and_clear_the_low_word(runtime: Runtime) -> None:
    x = np.array([3.0, -7.25, 1e-310, np.inf, -0.0, np.nan, 1e300])
    with np.errstate(all="ignore"):
        for name, exact in (("rcp", 1.0 / x), ("rsqrt", 1.0 / np.sqrt(x))):
            got = runtime.lanes(f"ev_{name}_approx_ftz_f64", np.float64, x)
            assert not np.any(got.view(np.uint64) & 0xFFFFFFFF)
            assert np.allclose(got[[0, 3, 6]], exact[[0, 3, 6]], rtol=2**-19)
        assert runtime.lanes("ev_rcp_approx_ftz_f64", np.float64, x)[[2, 4]].tolist() == [
            np.inf,
            -np.inf,
        ]


@pytest.mark.parametrize("name", ["ex2_approx", "tanh_approx"])
def test_half_forms_round_the_float_result_once_for_every_argument(
    runtime: Runtime, name: str
) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    half = bits.view(np.float16).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = np.exp2(half) if name == "ex2_approx" else np.tanh(half)
        wanted = exact.astype(np.float16)
    got = runtime.lanes(f"ev_{name}_f16", np.uint16, bits).view(np.float16)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    known = ~np.isnan(wanted)
    apart = np.abs(got[known].view(np.int16).astype(int) - wanted[known].view(np.int16))
    assert apart.max() <= 1 and np.mean(apart) < 1e-3
    pairs = runtime.lanes(f"ev_{name}_f16x2", np.uint32, bits.view(np.uint32))
    assert np.array_equal(pairs.view(np.uint16), got.view(np.uint16))


def declared_externals() -> set[str]:
    """The __ev_ functions that the front end's headers declare."""
    text = (EMULATOR / "front" / "include" / "ev" / "externals.h").read_text()
    both = re.findall(r"^EV_(?:UNARY|BINARY)\((\w+)\)", text, re.MULTILINE)
    single = [name for name in re.findall(r'^extern "C".*?__ev_(\w+)\(', text, re.MULTILINE)]
    return {name for stem in both for name in (stem, stem + "f")} | set(single)


def test_every_external_of_the_front_end_is_implemented(runtime: Runtime) -> None:
    externals = declared_externals()
    assert len(externals) > 90
    assert not {name for name in externals if f"ev_call_{name}" not in runtime.native.symbols}


def phi(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


RARE: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "sinpi": (mpmath.sinpi, [0.1, 0.25, 0.3, 1.75, -2.4, 1e6 + 0.125, 3e-200]),
    "cospi": (mpmath.cospi, [0.1, 0.25, 0.3, 1.75, -2.4, 1e6 + 0.125]),
    "exp10": (lambda x: mpmath.power(10, x), [0.1, -3.7, 20.5, 300.0]),
    "rcbrt": (lambda x: 1 / mpmath.cbrt(x), [0.1, 8.0, 1e200, 1e-300]),
    "erfcx": (
        lambda x: mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x),
        [-3.0, 0.0, 0.5, 5.0, 15.0, 19.9, 20.5, 1e3],
    ),
    "erfinv": (mpmath.erfinv, [1e-12, 1e-3, -0.3, 0.49999, 0.5, 0.9, -0.999999, 1 - 2**-50]),
    "erfcinv": (
        lambda x: mpmath.erfinv(1 - mpmath.mpf(x)),
        [0.9, 1e-3, 1e-20, 0.5, 0.7, 1.3, 1.5, 1.9999],
    ),
    "normcdf": (phi, [-37.0, -20.5, -3.0, -0.1, 0.0, 0.7, 5.0]),
    "normcdfinv": (
        lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1),
        [1e-20, 0.01, 0.3, 0.7, 0.99],
    ),
    "cyl_bessel_i0": (lambda x: mpmath.besseli(0, x), [0.0, 0.1, 5.0, 29.9, 30.1, -100.0, 700.0]),
    "cyl_bessel_i1": (lambda x: mpmath.besseli(1, x), [1e-5, 0.1, 5.0, 29.9, 30.1, -100.0, 700.0]),
    "j0": (lambda x: mpmath.besselj(0, x), [0.1, 1.0, 10.0]),
    "j1": (lambda x: mpmath.besselj(1, x), [0.1, 1.0, 10.0]),
    "y0": (lambda x: mpmath.bessely(0, x), [0.1, 1.0, 10.0]),
    "y1": (lambda x: mpmath.bessely(1, x), [0.1, 1.0, 10.0]),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [0.1, 3.5, -2.5, 50.0]),
    "tgamma": (mpmath.gamma, [0.1, 3.5, -2.5, 50.0]),
    **{
        name: (getattr(mpmath, name), [0.1, 0.5, 0.9])
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
    **{
        name: (getattr(mpmath, name), [0.1, 0.5, 0.9])
        for name in ("asinh", "atanh", "exp", "expm1", "log", "log10", "log1p", "cbrt")
    },
    "erf": (mpmath.erf, [0.1, -2.0]),
    "erfc": (mpmath.erfc, [0.1, -2.0, 20.0]),
    "acosh": (mpmath.acosh, [1.5, 100.0]),
    "log2": (lambda x: mpmath.log(x, 2), [1.5, 100.0]),
}


@pytest.mark.parametrize("name", RARE)
def test_functions_of_double_and_their_float_forms_agree_with_mpmath(
    runtime: Runtime, name: str
) -> None:
    exact, points = RARE[name]
    with mpmath.workdps(60):
        wanted = np.array([float(exact(mpmath.mpf(x))) for x in points])
        small = [x for x in points if 1e-30 < abs(x) < 30 and float(np.float32(x)) != 1.0]
        wanted_small = np.array([float(exact(mpmath.mpf(float(np.float32(x))))) for x in small])
    got = runtime.lanes(f"ev_call_{name}", np.float64, np.array(points))
    assert np.allclose(got, wanted, rtol=5e-15, atol=0), (got - wanted) / wanted
    assert np.allclose(
        runtime.lanes(f"ev_call_{name}f", np.float32, np.array(small, np.float32)),
        wanted_small,
        rtol=4e-7,
        atol=1e-45,
    )


def test_special_functions_keep_their_poles_and_signs(runtime: Runtime) -> None:
    def one(name: str, x: float) -> float:
        return float(runtime.lanes(f"ev_call_{name}", np.float64, np.array([x]))[0])

    assert (
        one("erfinv", 1.0) == math.inf
        and one("erfinv", -1.0) == -math.inf
        and math.isnan(one("erfinv", 1.5))
    )
    assert (
        one("erfcinv", 0.0) == math.inf
        and one("erfcinv", 2.0) == -math.inf
        and math.isnan(one("erfcinv", -1.0))
    )
    assert one("normcdfinv", 0.0) == -math.inf and one("normcdfinv", 1.0) == math.inf
    assert one("normcdf", -math.inf) == 0.0 and one("normcdf", math.inf) == 1.0
    assert one("erfcx", -30.0) == math.inf and one("erfcx", math.inf) == 0.0
    assert one("cyl_bessel_i0", 800.0) == math.inf and one("cyl_bessel_i1", -800.0) == -math.inf
    assert math.isnan(one("sinpi", math.inf)) and one("cospi", 1e300) == 1.0
    assert all(math.isnan(one(name, math.nan)) for name in RARE)


BINARY = {
    "atan2": math.atan2,
    "pow": math.pow,
    "fmod": math.fmod,
    "remainder": math.remainder,
    "hypot": math.hypot,
    "nextafter": math.nextafter,
    "rhypot": lambda x, y: 1 / math.hypot(x, y),
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_doubles_agree_with_pythons(runtime: Runtime, name: str) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0.1, 9, 64), rng.uniform(0.1, 9, 64)
    wanted = [BINARY[name](a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert np.allclose(runtime.lanes(f"ev_call_{name}", np.float64, x, y), wanted, rtol=1e-15)
    single = runtime.lanes(
        f"ev_call_{name}f", np.float32, x.astype(np.float32), y.astype(np.float32)
    )
    if name not in ("fmod", "remainder"):  # whose value jumps when an argument is rounded
        assert np.allclose(single, wanted, rtol=1e-5)


def test_ldexp_scales_by_its_integer(runtime: Runtime) -> None:
    n = np.array([3, -200, 200], np.int32)
    assert runtime.lanes("ev_call_ldexpf", np.float32, np.full(3, 1.5, np.float32), n).tolist() == [
        12.0,
        0.0,
        np.inf,
    ]
    assert runtime.lanes("ev_call_ldexp", np.float64, np.full(3, 1.5), n).tolist() == [
        12.0,
        1.5 * 2.0**-200,
        1.5 * 2.0**200,
    ]
