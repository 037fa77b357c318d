"""A test case of one instruction: PTX, inputs, and a reference model in Python integers and
fractions.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tests.emulator import exact_floats
from tests.emulator.exact_floats import FORMATS, Format
from tests.emulator.float_formats import distance

# over the decoded operands: ints, bools, exact.Value, or (low, high) of a pair
Model = Callable[..., Any]
INTEGER_BITS = {f"{sign}{bits}": bits for sign in "usb" for bits in (8, 16, 32, 64)}
# combinations of random operands of each case; with those of special ones the whole table's results
# stay below 5 MB
RANDOM = 600
THREADS = 128

_HEAD = ".version 8.4\n.target sm_90\n.address_size 64\n"
_FEW_FLOATS = (0.0, 1.0, 1.5, 3e-5, 65504.0)
_SOME_FLOATS = (*_FEW_FLOATS, 1.0, 1.5, 0.5, 2.5, 3.0, 0.1, 0.1, 448.0, 65520.0, 2.0**31, 1e30)
_MANY_FLOATS = (
    *(*_SOME_FLOATS, 7.3e-5, 127.5, 128.5, 255.5, 2049.0, 464.0, 57344.0, 61440.0),
    *(2.0**31 - 0.5, 2.0**32 - 1, 2.0**32, 2.0**63, 2.0**64, 0.25, 0.75),
)


@dataclass(frozen=True)
class Case:
    """A case of one instruction; `text` if it is not `name d, a, b, c`."""

    name: str
    sources: tuple[str, ...]  # PTX types; "pred"
    result: str
    model: Model
    mode: str = "rn"
    text: str = ""
    flush: bool = False  # .ftz: subnormal operands and results are zeros
    finite: bool = False  # .satfinite
    ulp: int = 0  # how far the emulator may be from the model; 0: the same bits
    absolute: float = 0.0  # or so near
    amounts: tuple[int, ...] = ()  # operands that count bits

    @property
    def body(self) -> str:
        """The PTX with {d}, {a}, {b}, {c} for registers."""
        return (
            self.text
            or f"{self.name} {', '.join(['{d}', *('{' + letter + '}' for letter in 'abc'[: len(self.sources)])])};"
        )


def width(type_: str) -> int:
    """Bits of an operand in memory."""
    if type_ == "pred":
        return 8
    if type_ in INTEGER_BITS:
        return INTEGER_BITS[type_]
    single = type_.removesuffix("x2")
    form = FORMATS[single]
    return 32 if single == "tf32" else form.bits * (2 if type_.endswith("x2") else 1)


def stored_width(type_: str) -> int:
    """Bits of a result in memory: whole registers of at least 16 bits; predicates as bytes."""
    return 8 if type_ == "pred" else max(16, width(type_))


def _letter(bits: int) -> str:
    return {8: "h", 16: "h", 32: "r", 64: "q"}[bits]


def ptx_of(case: Case, uniform: bool = False) -> str:
    """A module whose kernel `k(a, b.., d, count)` runs the instruction on element i of each;
    `uniform`: i is blockIdx.x.
    """
    count = len(case.sources)
    parameters = ", ".join(
        [*(f".param .u64 p{place}" for place in range(count + 1)), ".param .u32 count"]
    )
    index = (
        "mov.u32 %i, %ctaid.x;"
        if uniform
        else (
            "mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i,"
            " %n, %t;"
        )
    )
    lines = [
        "ld.param.u32 %n, [count];",
        index,
        "ld.param.u32 %n, [count];",
        "setp.ge.u32 %p9, %i, %n;",
        "@%p9 bra done;",
    ]
    names = {}
    for place, (letter, type_) in enumerate(zip("abc", case.sources, strict=False)):
        bits = width(type_)
        names[letter] = f"%p{place}" if type_ == "pred" else f"%{_letter(bits)}{place}"
        lines.append(
            f"ld.param.u64 %x, [p{place}]; mul.wide.u32 %y, %i, {bits // 8}; add.u64 %x, %x, %y;"
        )
        loaded = f"%h{place}" if type_ == "pred" else names[letter]
        lines.append(f"ld.global.{'u' if bits == 8 else 'b'}{bits} {loaded}, [%x];")
        if type_ == "pred":
            lines.append(f"setp.ne.u16 %p{place}, %h{place}, 0;")
    bits = stored_width(case.result)
    names["d"] = "%p4" if case.result == "pred" else f"%{_letter(bits)}4"
    lines.append(case.body.format(**names))
    if case.result == "pred":
        lines.append("selp.u16 %h4, 1, 0, %p4;")
    lines.append(
        f"ld.param.u64 %x, [p{count}]; mul.wide.u32 %y, %i, {bits // 8}; add.u64 %x, %x, %y;"
    )
    lines.append(f"st.global.b{bits} [%x], %{_letter(bits)}4;")
    registers = (
        ".reg .pred %p<10>; .reg .b16 %h<8>; .reg .b32 %r<12>; .reg .b64 %q<12>; .reg .b64 %x, %y;"
        " .reg .b32 %i, %n, %t;"
    )
    body = "\n ".join([registers, *lines])
    return f"{_HEAD}.visible .entry k({parameters}) {{\n {body}\ndone:\n ret;\n}}\n"


def grid_of(case: Case, uniform: bool = False) -> tuple[int, int]:
    """The number of blocks, and of threads of a block."""
    count = len(inputs_of(case)[0])
    return (count, 32) if uniform else (-(-count // THREADS), THREADS)


# ---------------------------------------------------------------- inputs


def inputs_of(case: Case) -> list[np.ndarray]:
    """The operands' bits, one array each, all of one length: combinations of special values, then
    random ones.
    """
    count = len(case.sources)
    specials = [
        _specials(type_, count, place in case.amounts) for place, type_ in enumerate(case.sources)
    ]
    combined = [np.array(column, dtype=object) for column in zip(*product(*specials), strict=True)]
    arrays = []
    for place, type_ in enumerate(case.sources):
        rng = np.random.default_rng(zlib.crc32(f"{case.name} {place}".encode()))
        random = _random(type_, rng, place in case.amounts)
        arrays.append(np.concatenate([combined[place], random]).astype(f"uint{width(type_)}"))
    return arrays


def _specials(type_: str, operands: int, amount: bool) -> list[int]:
    if type_ == "pred":
        return [0, 1]
    short = operands > 2
    if amount:
        return (
            [0, 1, 8, 31, 32, 64, 255]
            if short
            else [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31, (1 << 32) - 1]
        )
    if type_ in INTEGER_BITS:
        return _special_integers(INTEGER_BITS[type_], short)
    single = type_.removesuffix("x2")
    found = _special_floats(FORMATS[single], operands)
    if not type_.endswith("x2"):
        return found
    bits = FORMATS[single].bits
    return [low | found[(place * 7 + 3) % len(found)] << bits for place, low in enumerate(found)]


def _special_integers(bits: int, short: bool) -> list[int]:
    top = 1 << bits
    found = [
        0,
        1,
        2,
        top - 1,
        top - 2,
        top // 2 - 1,
        top // 2,
        top // 2 + 1,
        0xA5C3F00F5A3C0FF1 % top,
    ]
    if not short:
        found += [
            3,
            7,
            10,
            31,
            32,
            33,
            100,
            255 % top,
            256 % top,
            top - 7,
            top - 100,
            top // 3,
            top // 2 - 7,
            top // 5 * 3,
        ]
    return list(dict.fromkeys(found))


def _special_floats(form: Format, operands: int) -> list[int]:
    """Special values of both signs; fewer for two and three operands, because all combinations are
    tested.
    """
    values = {1: _MANY_FLOATS, 2: _SOME_FLOATS}.get(operands, _FEW_FLOATS)
    found = [exact_floats.encode(Fraction(value) if value else 0.0, form) for value in values]
    edges = [1, form.smallest_normal - 1, form.smallest_normal, form.largest, form.largest + 1]
    if operands == 1:
        edges += [
            form.smallest_normal + 1,
            form.largest - 1,
            exact_floats.encode(1.0, form) + 1,
            exact_floats.encode(1.0, form) - 1,
        ]
    found += [item << form.shift for item in edges]
    sign = 1 << (form.bits - 1 + form.shift)
    chosen = (
        [*found, *(item | sign for item in found)]
        if operands == 1
        else [item | (sign if place % 2 else 0) for place, item in enumerate(found)]
    )
    return list(dict.fromkeys([*chosen, sign, form.nan]))


def _random(type_: str, rng: np.random.Generator, amount: bool) -> np.ndarray:
    if type_ == "pred":
        return rng.integers(0, 2, RANDOM).astype(object)
    if amount:
        return rng.integers(0, 80, RANDOM).astype(object)
    bits = width(type_)
    anything = (
        rng.integers(0, 1 << bits, RANDOM, dtype=np.uint64, endpoint=False).astype(object)
        if bits < 64
        else _words(rng)
    )
    single = type_.removesuffix("x2")
    if single not in FORMATS:
        small = (rng.integers(-200, 200, RANDOM).astype(object)) % (1 << bits)
        return np.where(rng.random(RANDOM) < 0.3, small, anything)
    moderate = [
        _moderate(FORMATS[single], value)
        for value in rng.normal(0, 1, RANDOM) * np.exp2(rng.integers(-6, 12, RANDOM))
    ]
    if type_.endswith("x2"):
        moderate = [
            item | moderate[place - 5] << FORMATS[single].bits
            for place, item in enumerate(moderate)
        ]
    return np.where(rng.random(RANDOM) < 0.6, np.array(moderate, dtype=object), anything)


def _words(rng: np.random.Generator) -> np.ndarray:
    return np.array(
        [int(item) for item in rng.integers(0, 1 << 64, RANDOM, dtype=np.uint64, endpoint=False)],
        dtype=object,
    )


def _moderate(form: Format, value: float) -> int:
    return exact_floats.encode(Fraction(value), form)


# ---------------------------------------------------------------- the model


def expected(case: Case) -> np.ndarray:
    """The expected bits for `inputs_of`, by the model."""
    columns = [
        [_decoded(int(item), type_, case.flush) for item in array]
        for array, type_ in zip(inputs_of(case), case.sources, strict=True)
    ]
    bits = stored_width(case.result)
    results = [
        _encoded(case.model(*row), case) & ((1 << bits) - 1) for row in zip(*columns, strict=True)
    ]
    return np.array(results, dtype=f"uint{bits}")


def _decoded(pattern: int, type_: str, flush: bool) -> Any:
    if type_ == "pred":
        return bool(pattern)
    if type_ in INTEGER_BITS:
        return signed(pattern, INTEGER_BITS[type_]) if type_[0] == "s" else pattern
    form = FORMATS[type_.removesuffix("x2")]
    if not type_.endswith("x2"):
        return exact_floats.decode(pattern, form, flush)
    return tuple(
        exact_floats.decode(pattern >> form.bits * place & ((1 << form.bits) - 1), form, flush)
        for place in (0, 1)
    )


def signed(pattern: int, bits: int) -> int:
    """Bits as a signed number."""
    pattern &= (1 << bits) - 1
    return pattern - (1 << bits) if pattern >> (bits - 1) else pattern


def _encoded(value: Any, case: Case) -> int:
    type_ = case.result
    if type_ == "pred":
        return int(value)
    if type_ in INTEGER_BITS:
        bits = INTEGER_BITS[type_]
        # extended to the register
        return signed(value, bits) if type_[0] == "s" else value & ((1 << bits) - 1)
    form = FORMATS[type_.removesuffix("x2")]
    parts = value if type_.endswith("x2") else (value,)
    found = [
        exact_floats.encode(part, form, case.mode, flush=case.flush, finite=case.finite)
        for part in parts
    ]
    return sum(item << form.bits * place for place, item in enumerate(found))


def paired(model: Model) -> Model:
    """Applies a model of one number to both halves of a pair."""
    return lambda *pairs: tuple(model(*each) for each in zip(*pairs, strict=True))


# ---------------------------------------------------------------- judging


_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3",
    "e5m2": "float8_e5m2",
    "tf32": "float32",
}


def distances(case: Case, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distances of results in representable numbers; 0 or 1 for integers. All NaNs are
    equal.
    """
    single = case.result.removesuffix("x2")
    if single not in FORMATS:
        return (one != other).astype(np.uint64)
    dtype = _DTYPES[single]
    form = f"uint{32 if single == 'tf32' else FORMATS[single].bits}"
    first, second = (np.ascontiguousarray(item).view(form) for item in (one, other))
    native = dtype if dtype in ("float16", "float32", "float64") else form
    with np.errstate(invalid="ignore"):  # signalling NaNs
        gaps = distance(first.view(native), second.view(native), dtype)
    return gaps.reshape(len(one), -1).max(axis=1) >> np.uint64(13 if single == "tf32" else 0)


def disagreements(case: Case, got: np.ndarray, want: np.ndarray) -> Sequence[int]:
    """The indices where `got` is not as near to `want` as the case requires."""
    far = distances(case, got, want) > case.ulp
    if case.absolute and far.any():
        dtype = _DTYPES[case.result]
        with np.errstate(invalid="ignore"):
            gap = np.abs(got.view(dtype).astype(np.float64) - want.view(dtype).astype(np.float64))
        far &= ~(gap <= case.absolute)
    return [int(place) for place in np.flatnonzero(far)]


def shown(case: Case, place: int, got: np.ndarray, want: np.ndarray) -> str:
    """One result in one line."""
    operands = ", ".join(
        f"{type_} {int(array[place]):#x}"
        for array, type_ in zip(inputs_of(case), case.sources, strict=True)
    )
    return f"{case.name}({operands}) = {int(got[place]):#x}, expected {int(want[place]):#x}"
