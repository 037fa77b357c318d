"""half.c, fp8.c, integer.c, directed.c and compiler.c against exact arithmetic with fractions."""

from __future__ import annotations

import ctypes
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.run.native_lanes import LANES, Runtime
from tests.sampling import examples

# digits of mantissa, exponent bias, bits
FORMATS = {
    "f16": (10, 15, 16),
    "bf16": (7, 127, 16),
    "e4m3": (3, 7, 8),
    "e5m2": (2, 15, 8),
    "f32": (23, 127, 32),
    "f64": (52, 1023, 64),
}


def decode(bits: int, form: str) -> Fraction | float:
    """The value; a float if it is not finite."""
    digits, bias, width = FORMATS[form]
    sign = -1 if bits >> (width - 1) else 1
    field, mantissa = (
        (bits >> digits) & ((1 << (width - 1 - digits)) - 1),
        bits & ((1 << digits) - 1),
    )
    if form == "e4m3":
        if bits & 0x7F == 0x7F:
            return math.nan
    elif field == (1 << (width - 1 - digits)) - 1:
        return math.nan if mantissa else sign * math.inf
    if field == 0:
        return sign * Fraction(mantissa) * Fraction(2) ** (1 - bias - digits)
    return sign * (Fraction(mantissa) + (1 << digits)) * Fraction(2) ** (field - bias - digits)


def encode(value: Fraction, form: str, mode: str, negative: bool, finite: bool = False) -> int:
    """The bits of `value` rounded; `negative` is the sign of a zero, `finite` saturates."""
    digits, bias, width = FORMATS[form]
    top = ((1 << (width - 1 - digits)) - 1) << digits  # infinity
    largest = 0x7E if form == "e4m3" else top - 1
    negative = value < 0 or (value == 0 and negative)
    size = abs(value)
    place = Fraction(2) ** (1 - bias - digits)
    exponent = 0
    if size:
        exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, 1 - bias)
        while size >= Fraction(2) ** (exponent + 1):
            exponent += 1
        place = Fraction(2) ** (exponent - digits)
    whole, rest = divmod(size, place)
    half = rest * 2
    up = half > place or (half == place and whole % 2 == 1)
    if mode != "rn":
        up = rest > 0 and ((mode == "rp" and not negative) or (mode == "rm" and negative))
    whole += up
    bits = (
        int(whole) if exponent <= 1 - bias else int(whole) + (exponent + bias - 1) * (1 << digits)
    )
    if size == 0:
        bits = 0
    if bits > largest:
        toward = mode == "rz" or (mode == "rp" and negative) or (mode == "rm" and not negative)
        bits = largest if finite or toward else top
    return bits | negative << (width - 1)


def interesting_bits(form: str, count: int) -> np.ndarray:
    """Random patterns, with many near powers of two and at the ends."""
    width = FORMATS[form][2]
    rng = np.random.default_rng(3)
    kind = {16: np.uint16, 32: np.uint32, 64: np.uint64}[width]
    bits = rng.integers(0, 1 << width, count, dtype=np.uint64).astype(kind)
    bits[: count // 4] &= kind(~((1 << (FORMATS[form][0] - 1)) - 1) & ((1 << width) - 1))
    return bits


def fma_exact(a: int, b: int, c: int, form: str) -> int:
    """What fma.rn gives, as bits; 0x7fff for NaN."""
    x, y, z = decode(a, form), decode(b, form), decode(c, form)
    if any(isinstance(value, float) for value in (x, y, z)):
        with np.errstate(invalid="ignore"):
            value = np.float64(x) * np.float64(y)
            value = value + np.float64(z)
        top = encode(Fraction(2) ** 4000, form, "rn", False)
        return 0x7FFF if np.isnan(value) else top | (0x8000 if value < 0 else 0)
    product_negative = bool((a ^ b) & 0x8000)
    exact = x * y + z
    return encode(exact, form, "rn", product_negative and bool(c & 0x8000))


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_fma_rounds_once(runtime: Runtime, form: str) -> None:
    a, b, c = (
        np.random.default_rng(seed).permutation(interesting_bits(form, 6000)) for seed in range(3)
    )
    # products and addends of near sizes and of very different ones
    near = np.random.default_rng(9)
    exponent = FORMATS[form][1] << FORMATS[form][0]
    a[:3000] = (near.integers(0, 1 << FORMATS[form][0], 3000) + exponent).astype(np.uint16)
    b[:3000] = (near.integers(0, 1 << FORMATS[form][0], 3000) + exponent).astype(np.uint16)
    got = runtime.lanes(f"ev_fma_{form}", np.uint16, a, b, c)
    wanted = [
        fma_exact(*values, form) for values in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert got.tolist() == wanted
    pairs = [array.view(np.uint32) for array in (a, b, c)]
    assert np.array_equal(runtime.lanes(f"ev_fma_{form}x2", np.uint32, *pairs).view(np.uint16), got)


def test_fma_of_f16_is_right_where_float_would_round_twice(runtime: Runtime) -> None:
    # (1 + 2^-10) * (1 + 2^-10) + 2^-24 * k lies next to a midpoint after float's rounding
    a = np.full(64, 0x3C01, np.uint16)
    c = np.arange(64, dtype=np.uint16)
    got = runtime.lanes("ev_fma_f16", np.uint16, a, a, c)
    assert got.tolist() == [fma_exact(0x3C01, 0x3C01, value, "f16") for value in range(64)]


OPERATORS = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_sums_and_products_round_once(runtime: Runtime, form: str, operator: str) -> None:
    a, b = (
        np.random.default_rng(seed).permutation(interesting_bits(form, 4000)) for seed in (5, 6)
    )
    close = np.random.default_rng(7).integers(0, 0x300, 2000).astype(np.uint16)
    b[:2000] = a[:2000] ^ 0x8000 ^ close
    got = runtime.lanes(f"ev_{operator}_{form}", np.uint16, a, b).tolist()
    for x, y, z in zip(a.tolist(), b.tolist(), got, strict=True):
        u, v = decode(x, form), decode(y, form)
        if isinstance(u, float) or isinstance(v, float):
            continue
        exact = OPERATORS[operator](u, v)
        if exact != 0:
            assert z == encode(exact, form, "rn", False), (hex(x), hex(y))


def test_limits_clamp_and_ftz_flushes(runtime: Runtime) -> None:
    one, minus, nan, tiny = 0x3C00, 0xBC00, 0x7E00, 0x0001
    x = np.array([one, minus, nan, tiny, tiny | 0x8000], np.uint16)
    zero = np.zeros(5, np.uint16)
    ones = np.full(5, one, np.uint16)
    assert runtime.lanes("ev_add_sat_f16", np.uint16, x, ones).tolist()[:3] == [one, 0, 0]
    assert runtime.lanes("ev_fma_relu_f16", np.uint16, x, ones, zero).tolist() == [
        one,
        0,
        0x7FFF,
        tiny,
        0,
    ]
    assert runtime.lanes("ev_mul_ftz_f16", np.uint16, x, ones).tolist() == [
        one,
        minus,
        0x7FFF,
        0,
        0x8000,
    ]


def test_min_and_max_order_zeros_and_treat_nan_as_asked(runtime: Runtime) -> None:
    x = np.array([0x8000, 0x3C00, 0x7E00, 0x7E00, 0xBC00], np.uint16)
    y = np.array([0x0000, 0xBC00, 0x3C00, 0xFE01, 0xC000], np.uint16)
    assert runtime.lanes("ev_min_f16", np.uint16, x, y).tolist() == [
        0x8000,
        0xBC00,
        0x3C00,
        0x7FFF,
        0xC000,
    ]
    assert runtime.lanes("ev_max_f16", np.uint16, x, y).tolist() == [
        0x0000,
        0x3C00,
        0x3C00,
        0x7FFF,
        0xBC00,
    ]
    assert runtime.lanes("ev_min_nan_f16", np.uint16, x, y).tolist()[2] == 0x7FFF
    assert runtime.lanes(
        "ev_max_bf16x2",
        np.uint32,
        np.array([0x3F80BF80], np.uint32),
        np.array([0xBF803F80], np.uint32),
    ) == [0x3F803F80]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("form", ["f16", "bf16"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_conversions_round_exactly_in_every_mode(
    runtime: Runtime, source: str, form: str, mode: str
) -> None:
    real, whole = (np.float32, np.uint32) if source == "f32" else (np.float64, np.uint64)
    narrow = interesting_bits(form, 1500)
    values = np.array(
        [float(v) for v in map(lambda b: decode(b, form), narrow.tolist())], np.float64
    ).astype(real)
    midpoint = 1 << (FORMATS[source][0] - FORMATS[form][0] - 1)
    bits = np.concatenate(
        [
            (values.view(whole) + whole(delta))
            for delta in (0, 1, midpoint - 1, midpoint, midpoint + 1)
        ]
    )
    bits = np.concatenate([bits, interesting_bits(source, 500)])
    got = runtime.lanes(f"ev_cvt_{mode}_{form}_{source}", np.uint16, bits.view(real)).tolist()
    for pattern, y in zip(bits.tolist(), got, strict=True):
        value = decode(pattern, source)
        negative = pattern >> (FORMATS[source][2] - 1) == 1
        if isinstance(value, float):
            top = encode(Fraction(2) ** 4000, form, "rn", False)
            assert y == (0x7FFF if math.isnan(value) else top | (0x8000 if negative else 0))
        else:
            assert y == encode(value, form, mode, negative), (hex(pattern), mode)


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_integers_of_64_bits_convert_with_one_rounding(runtime: Runtime, form: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-(2**63), 2**63 - 1, 400) >> rng.integers(0, 63, 400)
    x = np.concatenate(
        [
            x,
            [
                0,
                1,
                -1,
                65519,
                65520,
                2049,
                2**63 - 1,
                -(2**63),
                (257 << 40) + 1,
                (257 << 40) - 1,
                257 << 40,
            ],
        ]
    )
    for mode in ("rn", "rz", "rm", "rp"):
        got = runtime.lanes(f"ev_cvt_{mode}_{form}_s64", np.uint16, x)
        assert got.tolist() == [encode(Fraction(int(v)), form, mode, False) for v in x]
        got = runtime.lanes(f"ev_cvt_{mode}_{form}_u64", np.uint16, x.view(np.uint64))
        assert got.tolist() == [
            encode(Fraction(int(v)), form, mode, False) for v in x.view(np.uint64)
        ]


def test_pairs_take_their_high_half_first(runtime: Runtime) -> None:
    high, low = np.array([1.0, -2.0], np.float32), np.array([0.5, np.nan], np.float32)
    assert runtime.lanes("ev_cvt_rn_f16x2_f32", np.uint32, high, low).tolist() == [
        0x3C003800,
        0xC0007FFF,
    ]
    assert runtime.lanes("ev_cvt_rn_relu_bf16x2_f32", np.uint32, high, low).tolist() == [
        0x3F803F00,
        0x00007FFF,
    ]


def test_half_widens_exactly(runtime: Runtime) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    exact = bits.view(np.float16).astype(np.float32)
    assert np.array_equal(runtime.lanes("ev_cvt_f32_f16", np.float32, bits), exact, equal_nan=True)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(runtime.lanes("ev_cvt_f32_bf16", np.float32, bits), wide, equal_nan=True)


def test_tf32_keeps_ten_bits(runtime: Runtime) -> None:
    bits = np.array(
        [
            0x3F800FFF,
            0x3F801000,
            0x3F803000,
            0x3F801001,
            0xBF801000,
            0x7F800000,
            0x7FC00000,
            0x7F7FFFFF,
        ],
        np.uint32,
    )
    x = bits.view(np.float32)
    away = runtime.lanes("ev_cvt_rna_tf32_f32", np.uint32, x).tolist()
    even = runtime.lanes("ev_cvt_rn_tf32_f32", np.uint32, x).tolist()
    assert away == [
        0x3F800000,
        0x3F802000,
        0x3F804000,
        0x3F802000,
        0xBF802000,
        0x7F800000,
        0x7FFFFFFF,
        0x7F800000,
    ]
    assert even == [
        0x3F800000,
        0x3F800000,
        0x3F804000,
        0x3F802000,
        0xBF800000,
        0x7F800000,
        0x7FFFFFFF,
        0x7F800000,
    ]


@pytest.mark.parametrize("form", ["e4m3", "e5m2"])
def test_fp8_is_rounded_to_even_and_saturates(runtime: Runtime, form: str) -> None:
    ends = [
        float(v) for v in map(lambda b: decode(b, form), range(128)) if not isinstance(v, float)
    ]
    points = sorted(
        set(ends)
        | {(a + b) / 2 for a, b in itertools.pairwise(ends)}
        | {1e6, 448.0, 464.0, 465.0, 57344.0, 61440.0, 1e-9}
    )
    x = np.array(points, np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0))])
    x = np.concatenate([x, -x])
    got = runtime.lanes(f"ev_cvt_rn_satfinite_{form}x2_f32", np.uint16, x, x[::-1])
    wanted = [encode(Fraction(float(v)), form, "rn", bool(np.signbit(v)), finite=True) for v in x]
    assert (got >> 8).tolist() == wanted and (got & 0xFF).tolist() == wanted[::-1]


@pytest.mark.parametrize("form", ["e4m3", "e5m2"])
def test_fp8_and_f16_convert_both_ways(runtime: Runtime, form: str) -> None:
    codes = np.arange(256, dtype=np.uint16)
    wide = runtime.lanes(f"ev_cvt_rn_f16x2_{form}x2", np.uint32, codes | codes[::-1] << 8)
    low, high = (
        (wide & 0xFFFF).astype(np.uint16).view(np.float16),
        (wide >> 16).astype(np.uint16).view(np.float16),
    )
    exact = np.array([float(decode(code, form)) for code in range(256)])
    assert np.array_equal(low.astype(np.float64), exact, equal_nan=True) and np.array_equal(
        high, low[::-1], equal_nan=True
    )
    back = runtime.lanes(f"ev_cvt_rn_satfinite_{form}x2_f16x2", np.uint16, wide) & 0xFF
    finite = np.isfinite(exact)
    assert np.array_equal(back[finite], codes[finite]) and set(back[np.isnan(exact)].tolist()) == {
        0x7F
    }
    assert back[np.isinf(exact)].tolist() == ([] if form == "e4m3" else [0x7B, 0xFB])
    relu = runtime.lanes(
        f"ev_cvt_rn_satfinite_relu_{form}x2_f32",
        np.uint16,
        np.array([-3.0, 2.0], np.float32),
        np.array([np.nan, -0.0], np.float32),
    )
    assert (relu >> 8).tolist()[0] == 0 and (relu & 0xFF).tolist() == [0x7F, 0]


BOUNDS = {
    kind: (np.iinfo(kind).min, np.iinfo(kind).max)
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
}
ROUNDINGS = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_floats_become_integers_rounded_and_saturated(runtime: Runtime, mode: str) -> None:
    x = np.array(
        [
            0.5,
            1.5,
            -0.5,
            -1.5,
            2.5,
            127.5,
            128.0,
            -128.5,
            255.4,
            65535.5,
            3e9,
            -3e9,
            1e19,
            -1e19,
            2.0**31,
            2.0**63,
            2.0**64,
            0.0,
        ]
    )
    for kind, (low, high) in BOUNDS.items():
        name = f"{'u' if low == 0 else 's'}{np.iinfo(kind).bits}"
        for source, real in (("f32", np.float32), ("f64", np.float64)):
            y = x.astype(real)
            got = runtime.lanes(f"ev_cvt_{mode}_{name}_{source}", kind, y)
            assert got.tolist() == [
                min(max(ROUNDINGS[mode](float(v)), int(low)), int(high)) for v in y
            ], (name, source)


def test_non_finite_numbers_become_the_integer_of_the_ptx_isa(runtime: Runtime) -> None:
    x = np.array([np.nan, np.inf, -np.inf])
    assert runtime.lanes("ev_cvt_rzi_s32_f64", np.int32, x).tolist() == [
        -(2**31),
        2**31 - 1,
        -(2**31),
    ]
    assert runtime.lanes("ev_cvt_rzi_s32_f32", np.int32, x.astype(np.float32)).tolist() == [
        0,
        2**31 - 1,
        -(2**31),
    ]
    assert runtime.lanes("ev_cvt_rzi_s64_f32", np.int64, x.astype(np.float32)).tolist() == [
        -(2**63),
        2**63 - 1,
        -(2**63),
    ]
    assert runtime.lanes("ev_cvt_rzi_u64_f64", np.uint64, x).tolist() == [2**63, 2**64 - 1, 0]
    assert runtime.lanes(
        "ev_cvt_rni_u8_f16", np.uint8, np.array([0x7E00, 0x4100, 0x5C00], np.uint16)
    ).tolist() == [0, 2, 255]
    assert runtime.lanes(
        "ev_cvt_rni_s16_bf16", np.int16, np.array([0xC0A0], np.uint16)
    ).tolist() == [-5]


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("form", ["f32", "f64"])
def test_directed_arithmetic_is_exact(runtime: Runtime, form: str, mode: str) -> None:
    real, whole = (np.float32, np.uint32) if form == "f32" else (np.float64, np.uint64)
    rng = np.random.default_rng(8)
    x, y, z = (rng.standard_normal((3, 96)) * 10.0 ** rng.integers(-3, 4, (3, 96))).astype(real)
    fractions = [[Fraction(float(v)) for v in array] for array in (x, y, z)]

    def check(name: str, exact: list[Fraction], *arrays: np.ndarray) -> None:
        got = runtime.lanes(f"ev_{name}_{mode}_{form}", real, *arrays).view(whole)
        assert got.tolist() == [encode(value, form, mode, False) for value in exact], name

    check("add", [a + b for a, b in zip(fractions[0], fractions[1], strict=True)], x, y)
    check("sub", [a - b for a, b in zip(fractions[0], fractions[1], strict=True)], x, y)
    check("mul", [a * b for a, b in zip(fractions[0], fractions[1], strict=True)], x, y)
    check("div", [a / b for a, b in zip(fractions[0], fractions[1], strict=True)], x, y)
    check("rcp", [1 / a for a in fractions[0]], x)
    check("fma", [a * b + c for a, b, c in zip(*fractions, strict=True)], x, y, z)
    squares = runtime.lanes(f"ev_sqrt_{mode}_{form}", real, np.abs(x))
    for root, value in zip(squares, np.abs(x), strict=True):
        below = (
            Fraction(float(root)) if mode != "rp" else Fraction(float(np.nextafter(root, real(0))))
        )
        above = (
            Fraction(float(np.nextafter(root, real(np.inf))))
            if mode != "rp"
            else Fraction(float(root))
        )
        assert below**2 <= Fraction(float(value)) <= above**2


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_directed_conversions_are_exact(runtime: Runtime, mode: str) -> None:
    rng = np.random.default_rng(8)
    x = np.concatenate(
        [rng.integers(-(2**63), 2**63 - 1, 90) >> rng.integers(0, 60, 90), [0, 1, -1, 2**63 - 1]]
    )
    for form, real, whole in (("f32", np.float32, np.uint32), ("f64", np.float64, np.uint64)):
        for source, values in (("s64", x), ("u64", x.view(np.uint64))):
            got = runtime.lanes(f"ev_cvt_{mode}_{form}_{source}", real, values).view(whole)
            assert got.tolist() == [encode(Fraction(int(v)), form, mode, False) for v in values], (
                form,
                source,
            )
    wide = rng.standard_normal(64)
    got = runtime.lanes(f"ev_cvt_{mode}_f32_f64", np.float32, wide).view(np.uint32)
    assert got.tolist() == [encode(Fraction(float(v)), "f32", mode, False) for v in wide]


def test_directed_functions_leave_the_hosts_rounding_as_it_was(runtime: Runtime) -> None:
    x = np.full(LANES, 1.0, np.float32)
    runtime.lanes("ev_div_rp_f32", np.float32, x, x * 3)
    assert np.float64(1.0) / np.float64(3.0) == 0.3333333333333333


@settings(max_examples=examples(300), deadline=None)
@given(st.floats(width=64), st.sampled_from(["hf", "bf"]))
def test_llvms_own_calls_round_to_the_nearest(value: float, kind: str) -> None:
    form = "f16" if kind == "hf" else "bf16"
    runtime = Runtime("whole")
    # a _Float16 comes back in the low 16 bits of the first vector register, as a float does
    address = runtime.native.address(f"__truncdf{kind}2")
    got = (
        np.float32(ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_double)(address)(value)).view(
            np.uint32
        )
        & 0xFFFF
    )
    if math.isnan(value):
        assert math.isnan(decode(int(got), form))
    elif math.isinf(value):
        assert decode(int(got), form) == value
    else:
        assert got == encode(Fraction(value), form, "rn", math.copysign(1.0, value) < 0)


def test_llvms_own_call_widens_every_half() -> None:
    runtime = Runtime("whole")
    widen = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(
        runtime.native.address("__extendhfsf2")
    )
    for bits in [*range(0, 65536, 7), 0x7C00, 0xFC00, 0x7E01, 1, 0x8001]:
        with np.errstate(invalid="ignore"):
            got = widen(float(np.uint32(bits).view(np.float32)))
        assert np.array_equal(
            np.float32(got), np.uint16(bits).view(np.float16).astype(np.float32), equal_nan=True
        )
