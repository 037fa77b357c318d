"""Cases of cvt between all number formats, except between integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from tests.emulator import exact_floats
from tests.emulator.exact_floats import Value
from tests.emulator.instruction import INTEGER_BITS, Case, Model

MODES = ("rn", "rz", "rm", "rp")
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
HALVES = ("f16", "bf16")
FLOATS = (*HALVES, "f32", "f64")


def conversion_cases() -> Iterator[Case]:
    """All conversion cases."""
    yield from _to_integers()
    yield from _from_integers()
    yield from _to_integral()
    yield from _between()
    yield from _pairs()
    yield from _fp8()


def _to_integers() -> Iterator[Case]:
    for source in FLOATS:
        # ptxas knows none between bf16 and 8 bits
        for to in INTEGERS[2 if source == "bf16" else 0 :]:
            modes = MODES if to in ("s32", "u64", "u8") or source == "f32" else ("rn", "rz")
            for mode in modes:
                yield Case(f"cvt.{mode}i.{to}.{source}", (source,), to, _whole(to, source, mode))
    yield Case("cvt.rni.ftz.s32.f32", ("f32",), "s32", _whole("s32", "f32", "rn"), flush=True)
    yield Case("cvt.rpi.ftz.s32.f32", ("f32",), "s32", _whole("s32", "f32", "rp"), flush=True)
    yield Case("cvt.rzi.sat.u8.f32", ("f32",), "u8", _whole("u8", "f32", "rz"))


def _whole(to: str, source: str, mode: str) -> Model:
    """Saturated; NaN as in the PTX ISA for cvt: zero, or only the top bit if the source is f64 or
    the result has 64 bits.
    """
    bits = INTEGER_BITS[to]
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    )

    def model(x: Value) -> int:
        if exact_floats.is_nan(x):
            return 1 << (bits - 1) if source == "f64" or bits == 64 else 0
        if exact_floats.is_infinite(x):
            return high if x > 0 else low
        return max(low, min(high, exact_floats.signed_integral(Fraction(x), mode)))

    return model


def _number(a: int) -> Value:
    return Fraction(a) if a else 0.0


def _from_integers() -> Iterator[Case]:
    for source in INTEGERS:
        for to in FLOATS:
            if to == "bf16" and source in ("u8", "s8"):
                continue
            for mode in MODES if source in ("s32", "u32", "s64", "u64") else ("rn",):
                yield Case(f"cvt.{mode}.{to}.{source}", (source,), to, _number, mode)
    yield Case("cvt.rn.sat.f32.s32", ("s32",), "f32", lambda a: exact_floats.saturated(_number(a)))


def _rounded(mode: str) -> Model:
    """Rounded to an integer, keeping the sign of zero."""

    def model(x: Value) -> Value:
        if not exact_floats.is_finite(x) or x == 0:
            return x
        found = exact_floats.signed_integral(Fraction(x), mode)
        return Fraction(found) if found else math.copysign(0.0, x)

    return model


def _to_integral() -> Iterator[Case]:
    for mode in MODES:
        for type_ in ("f32", "f64", "f16", "bf16"):
            yield Case(f"cvt.{mode}i.{type_}.{type_}", (type_,), type_, _rounded(mode))
        yield Case(f"cvt.{mode}i.ftz.f32.f32", ("f32",), "f32", _rounded(mode), flush=True)


def _same(x: Value) -> Value:
    return x


def _between() -> Iterator[Case]:
    for source in ("f32", "f64"):
        for to in HALVES:
            for mode in MODES if to == "f16" or source == "f32" else ("rn", "rz"):
                yield Case(f"cvt.{mode}.{to}.{source}", (source,), to, _same, mode)
    for mode in MODES:
        yield Case(f"cvt.{mode}.f32.f64", ("f64",), "f32", _same, mode)
        yield Case(f"cvt.{mode}.sat.f32.f64", ("f64",), "f32", exact_floats.saturated, mode)
    yield Case("cvt.rn.ftz.f16.f32", ("f32",), "f16", _flushed_only_f32)
    yield Case("cvt.f64.f32", ("f32",), "f64", _same)
    yield Case("cvt.ftz.f64.f32", ("f32",), "f64", _same, flush=True)
    for source in HALVES:
        for to in ("f32", "f64"):
            yield Case(f"cvt.{to}.{source}", (source,), to, _same)
    yield Case("cvt.rn.bf16.f16", ("f16",), "bf16", _same)
    yield Case("cvt.rn.f16.bf16", ("bf16",), "f16", _same)
    yield Case("cvt.sat.f32.f32", ("f32",), "f32", exact_floats.saturated)
    yield Case("cvt.ftz.sat.f32.f32", ("f32",), "f32", exact_floats.saturated, flush=True)
    yield Case("cvt.rn.sat.f16.f32", ("f32",), "f16", exact_floats.saturated)
    yield Case("cvt.sat.f16.f16", ("f16",), "f16", exact_floats.saturated)
    yield Case("cvt.sat.f32.f16", ("f16",), "f32", exact_floats.saturated)
    for mode in ("rn", "rz"):
        for to in HALVES:
            yield Case(f"cvt.{mode}.relu.{to}.f32", ("f32",), to, exact_floats.rectified, mode)
        yield Case(f"cvt.{mode}.tf32.f32", ("f32",), "tf32", _same, mode)
        yield Case(f"cvt.{mode}.relu.tf32.f32", ("f32",), "tf32", exact_floats.rectified, mode)
    yield Case("cvt.rna.tf32.f32", ("f32",), "tf32", _same, "rna")


def _flushed_only_f32(x: Value) -> Value:
    """Flushes subnormal f32 to zero; subnormal f16 stay."""
    least = Fraction(2) ** -126
    return math.copysign(0.0, x) if exact_floats.is_finite(x) and abs(x) < least else x


def _pairs() -> Iterator[Case]:
    """Pairs: the first operand goes to the upper half."""
    for to in HALVES:
        for mode in ("rn", "rz"):
            yield Case(
                f"cvt.{mode}.{to}x2.f32", ("f32", "f32"), f"{to}x2", lambda a, b: (b, a), mode
            )
            yield Case(
                f"cvt.{mode}.relu.{to}x2.f32",
                ("f32", "f32"),
                f"{to}x2",
                lambda a, b: (exact_floats.rectified(b), exact_floats.rectified(a)),
                mode,
            )


def _fp8() -> Iterator[Case]:
    for type_ in ("e4m3", "e5m2"):
        for relu in (False, True):
            limit: Model = exact_floats.rectified if relu else _same
            suffix = ".relu" if relu else ""
            yield Case(f"cvt.rn.satfinite{suffix}.{type_}x2.f32", ("f32", "f32"), f"{type_}x2",
                       lambda a, b, limit=limit: (limit(b), limit(a)), finite=True)  # fmt: skip
            yield Case(f"cvt.rn.satfinite{suffix}.{type_}x2.f16x2", ("f16x2",), f"{type_}x2",
                       lambda a, limit=limit: (limit(a[0]), limit(a[1])), finite=True)  # fmt: skip
            yield Case(
                f"cvt.rn{suffix}.f16x2.{type_}x2",
                (f"{type_}x2",),
                "f16x2",
                lambda a, limit=limit: (limit(a[0]), limit(a[1])),
            )
