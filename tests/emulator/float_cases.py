"""Cases of floating-point instructions: arithmetic in every rounding mode and format, comparisons,
approximations.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction

from tests.emulator import exact_floats
from tests.emulator.exact_floats import FORMATS, Value
from tests.emulator.instruction import Case, Model, paired

MODES = ("rn", "rz", "rm", "rp")
HALVES = ("f16", "bf16")
ORDERED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def float_cases() -> Iterator[Case]:
    """All floating-point cases."""
    yield from _arithmetic()
    yield from _half_arithmetic()
    yield from _extremes()
    yield from _signs()
    yield from _comparisons()
    yield from _classes()
    yield from _approximations()


def _limited(model: Model, limit: Callable[[Value], Value]) -> Model:
    return lambda *values: limit(model(*values))


def _arithmetic() -> Iterator[Case]:
    operations = {"add": (exact_floats.add, 2), "sub": (exact_floats.subtract, 2), "mul": (exact_floats.multiply, 2), "fma": (exact_floats.fused, 3),
                  "div": (exact_floats.divide, 2), "sqrt": (exact_floats.root, 1), "rcp": (lambda x, mode: exact_floats.divide(Fraction(1), x), 1)}  # fmt: skip
    for op, (function, count) in operations.items():
        for mode in MODES:

            def model(*values: Value, function: Model = function, mode: str = mode) -> Value:
                return function(*values, mode=mode)

            for type_ in ("f32", "f64"):
                yield Case(f"{op}.{mode}.{type_}", (type_,) * count, type_, model, mode)
            yield Case(f"{op}.{mode}.ftz.f32", ("f32",) * count, "f32", model, mode, flush=True)
            if op in ("add", "sub", "mul", "fma"):
                yield Case(
                    f"{op}.{mode}.sat.f32",
                    ("f32",) * count,
                    "f32",
                    _limited(model, exact_floats.saturated),
                    mode,
                )
        if op in ("add", "sub", "mul"):
            yield Case(f"{op}.f32", ("f32", "f32"), "f32", function)
            yield Case(
                f"{op}.ftz.sat.f32",
                ("f32", "f32"),
                "f32",
                _limited(function, exact_floats.saturated),
                flush=True,
            )
    yield Case("mad.rn.f32", ("f32",) * 3, "f32", exact_floats.fused)


def _half_arithmetic() -> Iterator[Case]:
    operations = {
        "add": (exact_floats.add, 2),
        "sub": (exact_floats.subtract, 2),
        "mul": (exact_floats.multiply, 2),
        "fma": (exact_floats.fused, 3),
    }
    for op, (function, count) in operations.items():
        forms: list[tuple[str, str, Model, bool]] = [
            ("", "f16", function, False),
            ("", "bf16", function, False),
        ]
        forms += [
            (".ftz", "f16", function, True),
            (".sat", "f16", _limited(function, exact_floats.saturated), False),
        ]
        forms += [(".ftz.sat", "f16", _limited(function, exact_floats.saturated), True)]
        if op == "fma":
            forms += [
                (".relu", type_, _limited(function, exact_floats.rectified), False)
                for type_ in HALVES
            ]
            forms += [(".ftz.relu", "f16", _limited(function, exact_floats.rectified), True)]
        for suffix, type_, model, flush in forms:
            name = f"{op}.rn{suffix}.{type_}"
            yield Case(name, (type_,) * count, type_, model, flush=flush)
            yield Case(
                f"{name}x2", (f"{type_}x2",) * count, f"{type_}x2", paired(model), flush=flush
            )


def _extremes() -> Iterator[Case]:
    for op, function in (("min", exact_floats.minimum), ("max", exact_floats.maximum)):
        for nan in (False, True):

            def model(x: Value, y: Value, function: Model = function, nan: bool = nan) -> Value:
                return function(x, y, nan)

            def crossed(x: Value, y: Value, model: Model = model) -> Value:
                found = model(abs(x), abs(y))
                return (
                    -found if exact_floats.is_negative(x) != exact_floats.is_negative(y) else found
                )

            suffix = ".NaN" if nan else ""
            yield Case(f"{op}{suffix}.f32", ("f32", "f32"), "f32", model)
            yield Case(f"{op}.ftz{suffix}.f32", ("f32", "f32"), "f32", model, flush=True)
            yield Case(f"{op}{suffix}.xorsign.abs.f32", ("f32", "f32"), "f32", crossed)
            for type_ in HALVES:
                yield Case(f"{op}{suffix}.{type_}", (type_, type_), type_, model)
                yield Case(
                    f"{op}{suffix}.{type_}x2", (f"{type_}x2",) * 2, f"{type_}x2", paired(model)
                )
            yield Case(f"{op}.ftz{suffix}.f16", ("f16", "f16"), "f16", model, flush=True)
        yield Case(f"{op}.f64", ("f64", "f64"), "f64", function)


def _signs() -> Iterator[Case]:
    for op, function in (("neg", operator.neg), ("abs", abs)):
        for type_ in ("f32", "f64", "f16", "bf16"):
            yield Case(f"{op}.{type_}", (type_,), type_, function)
        for type_ in HALVES:
            yield Case(f"{op}.{type_}x2", (f"{type_}x2",), f"{type_}x2", paired(function))
        for type_ in ("f32", "f16"):
            yield Case(f"{op}.ftz.{type_}", (type_,), type_, function, flush=True)
    for bits in (32, 64):
        top = 1 << (bits - 1)
        yield Case(
            f"copysign.f{bits}",
            (f"b{bits}",) * 2,
            f"b{bits}",
            lambda a, b, top=top: a & top | b & (top - 1),
        )


def _ordered(name: str) -> Model:
    """A comparison by its name: eq, or equ, which is also true for NaN."""
    if name in ("num", "nan"):
        return lambda x, y: (exact_floats.is_nan(x) or exact_floats.is_nan(y)) == (name == "nan")
    test, unordered = ORDERED[name.removesuffix("u")], name.endswith("u")
    return lambda x, y: (
        unordered if exact_floats.is_nan(x) or exact_floats.is_nan(y) else test(x, y)
    )


def _comparisons() -> Iterator[Case]:
    names = [*ORDERED, *(name + "u" for name in ORDERED), "num", "nan"]
    for name in names:
        for type_ in ("f32", "f64", "f16", "bf16"):
            yield Case(f"setp.{name}.{type_}", (type_, type_), "pred", _ordered(name))
    for name in ("eq", "lt", "geu"):
        model = _ordered(name)
        yield Case(f"setp.{name}.ftz.f32", ("f32", "f32"), "pred", model, flush=True)
        yield Case(f"setp.{name}.ftz.f16", ("f16", "f16"), "pred", model, flush=True)
        for type_ in HALVES:
            pair = (f"{type_}x2",) * 2
            yield Case(f"setp.{name}.{type_}x2 low", pair, "pred", lambda a, b, model=model: model(a[0], b[0]),
                       text=f"setp.{name}.{type_}x2 {{d}}|%p8, {{a}}, {{b}};")  # fmt: skip
            yield Case(f"setp.{name}.{type_}x2 high", pair, "pred", lambda a, b, model=model: model(a[1], b[1]),
                       text=f"setp.{name}.{type_}x2 %p8|{{d}}, {{a}}, {{b}};")  # fmt: skip
            yield Case(f"setp.{name}.and.{type_}x2 high", (*pair, "pred"), "pred", lambda a, b, p, model=model: model(a[1], b[1]) and p,
                       text=f"setp.{name}.and.{type_}x2 %p8|{{d}}, {{a}}, {{b}}, {{c}};")  # fmt: skip
            yield Case(
                f"set.{name}.{type_}.{type_}",
                (type_, type_),
                type_,
                lambda a, b, model=model: Fraction(1) if model(a, b) else 0.0,
            )
            yield Case(
                f"set.{name}.u32.{type_}",
                (type_, type_),
                "u32",
                lambda a, b, model=model: -model(a, b),
            )
            yield Case(
                f"set.{name}.{type_}x2.{type_}x2",
                pair,
                f"{type_}x2",
                paired(lambda a, b, model=model: Fraction(1) if model(a, b) else 0.0),
            )
        yield Case(
            f"set.{name}.u32.f32", ("f32", "f32"), "u32", lambda a, b, model=model: -model(a, b)
        )
        yield Case(
            f"set.{name}.f32.f64",
            ("f64", "f64"),
            "f32",
            lambda a, b, model=model: Fraction(1) if model(a, b) else 0.0,
        )
    yield Case("slct.b32.f32", ("b32", "b32", "f32"), "b32", lambda a, b, c: a if c >= 0 else b)
    yield Case(
        "slct.ftz.u32.f32",
        ("u32", "u32", "f32"),
        "u32",
        lambda a, b, c: a if c >= 0 else b,
        flush=True,
    )


def _classes() -> Iterator[Case]:
    for type_ in ("f32", "f64"):
        least = exact_floats.decode(FORMATS[type_].smallest_normal, FORMATS[type_])

        def subnormal(x: Value, least: Value = least) -> bool:
            return exact_floats.is_finite(x) and x != 0 and abs(x) < least

        tests: dict[str, Model] = {
            "finite": exact_floats.is_finite,
            "infinite": exact_floats.is_infinite,
            "number": lambda x: not exact_floats.is_nan(x),
            "notanumber": exact_floats.is_nan,
            "normal": lambda x, subnormal=subnormal: exact_floats.is_finite(x) and not subnormal(x),
            "subnormal": subnormal,
        }
        for name, test in tests.items():
            yield Case(f"testp.{name}.{type_}", (type_,), "pred", test)


def _real(function: Callable[[float], float]) -> Model:
    """A function of Python's math on values; NaN where it is undefined."""

    def model(x: Value) -> Value:
        try:
            found = function(float(x))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
        return found if found == 0 or not math.isfinite(found) else Fraction(found)

    return model


def _base_two_logarithm(x: float) -> float:
    return -math.inf if x == 0 else math.log2(x)


def _approximations() -> Iterator[Case]:
    # absolutely near where the result is near zero
    functions: dict[str, tuple[Callable[[float], float], int, float]] = {
        "ex2.approx": (lambda x: 2.0**x, 2, 0.0),
        "lg2.approx": (
            _base_two_logarithm,
            3,
            2.0**-22,
        ),
        "sin.approx": (math.sin, 3, 2.0**-20),
        "cos.approx": (math.cos, 3, 2.0**-20),
        "tanh.approx": (math.tanh, 3, 0.0),
    }
    for name, (function, ulp, absolute) in functions.items():
        yield Case(f"{name}.f32", ("f32",), "f32", _real(function), ulp=ulp, absolute=absolute)
        if not name.startswith("tanh"):
            yield Case(
                f"{name}.ftz.f32",
                ("f32",),
                "f32",
                _real(function),
                ulp=ulp,
                absolute=absolute,
                flush=True,
            )
    for name, type_, flush in (
        ("ex2.approx", "f16", False),
        ("ex2.approx.ftz", "bf16", True),
        ("tanh.approx", "f16", False),
        ("tanh.approx", "bf16", False),
    ):
        model = _real(functions[name.removesuffix(".ftz")][0])
        yield Case(f"{name}.{type_}", (type_,), type_, model, ulp=1, flush=flush)
        yield Case(
            f"{name}.{type_}x2", (f"{type_}x2",), f"{type_}x2", paired(model), ulp=1, flush=flush
        )
    for suffix, flush in (("", False), (".ftz", True)):
        yield Case(
            f"rcp.approx{suffix}.f32",
            ("f32",),
            "f32",
            lambda x: exact_floats.divide(Fraction(1), x),
            ulp=1,
            flush=flush,
        )
        yield Case(
            f"sqrt.approx{suffix}.f32", ("f32",), "f32", exact_floats.root, ulp=1, flush=flush
        )
        yield Case(f"rsqrt.approx{suffix}.f32", ("f32",), "f32", _inverse_root, ulp=2, flush=flush)
        yield Case(
            f"div.approx{suffix}.f32",
            ("f32", "f32"),
            "f32",
            exact_floats.divide,
            ulp=2,
            flush=flush,
        )
        yield Case(
            f"div.full{suffix}.f32", ("f32", "f32"), "f32", exact_floats.divide, ulp=2, flush=flush
        )
    yield Case("rsqrt.approx.f64", ("f64",), "f64", _inverse_root, ulp=2)
    # 20 bits of mantissa are promised
    yield Case(
        "rcp.approx.ftz.f64",
        ("f64",),
        "f64",
        lambda x: exact_floats.divide(Fraction(1), x),
        ulp=1 << 33,
        flush=True,
    )
    yield Case("rsqrt.approx.ftz.f64", ("f64",), "f64", _inverse_root, ulp=1 << 33, flush=True)


def _inverse_root(x: Value) -> Value:
    return exact_floats.divide(Fraction(1), exact_floats.root(x))
