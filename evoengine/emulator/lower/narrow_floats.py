"""cvt to and from floating formats narrower than f32: f16, bf16, tf32, e4m3, e5m2."""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import floating, integer
from evoengine.emulator.lower.floats import DIRECTED, flush, flush_bits, is_float, saturate
from evoengine.emulator.lower.half import joined, widen_half
from evoengine.emulator.lower.integers import as_64_bits, read_integer
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction

SINGLE = frozenset(("f16", "bf16"))
FORMATS = SINGLE | {"f16x2", "bf16x2", "tf32", "e4m3x2", "e5m2x2"}
_FP8 = ("e4m3x2", "e5m2x2")
_TO_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_LIMITS = ("sat", "relu")


def convert_narrow(cx: LoweringContext, instruction: Instruction, to: str, source: str) -> None:
    """cvt where `to` or `source` is one of FORMATS."""
    given = set(instruction.modifiers[:-2])
    if to in _FP8 or source in _FP8:
        _fp8(cx, instruction, to, source, given)
    elif to == "tf32" and source == "f32":
        _refuse(cx, given - {"rn", "rz", "rna", "relu"})
        name = "_".join(item for item in ("ev_cvt", *instruction.modifiers))
        cx.apply_lanes(name, instruction.operands[1:2], 32, 32)
    elif to.endswith("x2") and source == "f32":
        _pair(cx, instruction, to, given)
    elif to in SINGLE and source in SINGLE:
        _between_halves(cx, instruction, to, source, given)
    elif to in SINGLE and is_float(source):
        _refuse(cx, given - {"rn", "ftz", *DIRECTED, *_LIMITS})
        _narrow(cx, instruction, to, source, given)
    elif to in SINGLE and source[0] in "us":
        _from_integer(cx, instruction, to, source, given)
    elif source in SINGLE and is_float(to):
        _widen(cx, instruction, to, source, given)
    elif source in SINGLE and to[0] in "us":
        _refuse(cx, given - {*_TO_INTEGRAL, "sat", "ftz"})
        rounding = next((item for item in _TO_INTEGRAL if item in given), "rzi")
        cx.apply_lanes(
            f"ev_cvt_{rounding}_{to}_{source}",
            instruction.operands[1:2],
            16,
            TYPE_BITS[to],
            signed=to[0] == "s",
        )
    else:
        raise cx.unsupported()


def _refuse(cx: LoweringContext, unknown: set[str]) -> None:
    if unknown:
        raise cx.unsupported(", ".join(sorted(unknown)))


def _mode(given: set[str]) -> str:
    return next((item for item in DIRECTED if item in given), "rn")


def _limit(given: set[str]) -> str:
    return "".join(f"_{item}" for item in _LIMITS if item in given)


def _fp8(
    cx: LoweringContext, instruction: Instruction, to: str, source: str, given: set[str]
) -> None:
    """cvt.rn.satfinite.{relu}.e4m3x2.f32 d, a, b (a into the upper byte), from f16x2, and back to
    f16x2.
    """
    _refuse(cx, given - {"rn", "satfinite", "relu"})
    relu = "_relu" if "relu" in given else ""
    if to in _FP8 and source in ("f32", "f16x2") and "satfinite" in given:
        cx.apply_lanes(f"ev_cvt_rn_satfinite{relu}_{to}_{source}", instruction.operands[1:], 32, 16)
    elif source in _FP8 and to == "f16x2":
        cx.apply_lanes(f"ev_cvt_rn{relu}_f16x2_{source}", instruction.operands[1:2], 16, 32)
    else:
        raise cx.unsupported()


def _pair(cx: LoweringContext, instruction: Instruction, to: str, given: set[str]) -> None:
    """cvt.rn.f16x2.f32 d, a, b: a into the upper half, b into the lower."""
    _refuse(cx, given - {"rn", "rz", "relu"})
    if given <= {"rn"}:

        def build(vector: bool, upper: str, lower: str) -> str:
            high, low = (
                narrow_to_half(cx, vector, item, to.removesuffix("x2")) for item in (upper, lower)
            )
            return joined(cx, vector, low, high)

        cx.apply(instruction.operands[1:3], 32, 32, build)
        return
    cx.apply_lanes(
        f"ev_cvt_{_mode(given)}{_limit(given)}_{to}_f32", instruction.operands[1:3], 32, 32
    )


def _narrow(
    cx: LoweringContext, instruction: Instruction, to: str, source: str, given: set[str]
) -> None:
    """f32 or f64 to 16 bits."""
    bits = TYPE_BITS[source]
    if source == "f32" and given <= {"rn"}:
        cx.apply(
            instruction.operands[1:2],
            bits,
            16,
            lambda vector, value: narrow_to_half(cx, vector, value, to),
        )
        return
    text = cx.vector(instruction.operands[1], bits)
    if "ftz" in given and source == "f32":
        text = flush_bits(cx, True, text, source)
    _by_runtime(cx, instruction, to, source, given, bits, text)


def _by_runtime(
    cx: LoweringContext,
    instruction: Instruction,
    to: str,
    source: str,
    given: set[str],
    bits: int,
    text: str,
) -> None:
    (found,) = cx.call_lanes(
        f"ev_cvt_{_mode(given)}{_limit(given)}_{to}_{source}", [(bits, text)], [16]
    )
    cx.write(instruction.operands[0], Value(VARYING, found, 16))


def _between_halves(
    cx: LoweringContext, instruction: Instruction, to: str, source: str, given: set[str]
) -> None:
    """Through f32, which represents both exactly; also rounding to an integer, or saturation to [0,
    1], within one type.
    """
    _refuse(cx, given - {"rn", "ftz", *DIRECTED, *_LIMITS, *_TO_INTEGRAL})
    rounding = next((item for item in _TO_INTEGRAL if item in given), None)
    value = cx.vector(instruction.operands[1], 16)
    if "ftz" in given:
        value = flush_bits(cx, True, value, source)
    text = widen_half(cx, True, value, source)
    if rounding:
        kind = floating("f32", True)
        text = cx.as_integer(
            cx.ir.intrinsic(_TO_INTEGRAL[rounding], kind, cx.as_float(text, "f32", True, 32)),
            "f32",
            True,
        )
    _by_runtime(cx, instruction, to, "f32", given, 32, text)


def _from_integer(
    cx: LoweringContext, instruction: Instruction, to: str, source: str, given: set[str]
) -> None:
    _refuse(cx, given - {"rn", "sat", *DIRECTED})
    text, type_ = as_64_bits(cx, read_integer(cx, instruction, source), source)
    _by_runtime(cx, instruction, to, type_, given - {"sat"}, 64, text)


def _widen(
    cx: LoweringContext, instruction: Instruction, to: str, source: str, given: set[str]
) -> None:
    """16 bits to f32 or f64: exact."""
    _refuse(cx, given - {"sat", "ftz"})

    def build(vector: bool, value: str) -> str:
        text = widen_half(cx, vector, value, source)
        if not given and to == "f32":
            return text
        number = cx.as_float(text, "f32", vector, 32)
        if "ftz" in given and to == "f32":
            number = flush(cx, vector, number)
        if to == "f64":
            number = cx.ir.get(
                f"fpext {floating('f32', vector)} {number} to {floating('f64', vector)}"
            )
        if "sat" in given:
            number = saturate(cx, to, vector, number)
        return cx.as_integer(number, to, vector)

    cx.apply(instruction.operands[1:2], 16, TYPE_BITS[to], build)


def narrow_to_half(cx: LoweringContext, vector: bool, value: str, to: str) -> str:
    """The bits of f32 rounded to nearest even into 16; NaN becomes 0x7fff."""
    ir, wide, kind = cx.ir, integer(32, vector), integer(16, vector)
    number = cx.as_float(value, "f32", vector, 32)
    if to == "bf16":

        def fixed(amount: int) -> str:
            return f"splat (i32 {amount})" if vector else str(amount)

        odd = ir.get(f"and {wide} {ir.get(f'lshr {wide} {value}, {fixed(16)}')}, {fixed(1)}")
        rounded = ir.get(f"add {wide} {ir.get(f'add {wide} {value}, {fixed(0x7FFF)}')}, {odd}")
        narrow = ir.get(f"trunc {wide} {ir.get(f'lshr {wide} {rounded}, {fixed(16)}')} to {kind}")
    else:
        narrow = cx.as_integer(
            ir.get(f"fptrunc {floating('f32', vector)} {number} to {floating('f16', vector)}"),
            "f16",
            vector,
        )
    wrong = ir.get(f"fcmp uno {floating('f32', vector)} {number}, {number}")
    nan = "splat (i16 32767)" if vector else "32767"
    return ir.get(f"select {integer(1, vector)} {wrong}, {kind} {nan}, {kind} {narrow}")
