"""Matrix products of a warp: mma, wmma.mma.

The arithmetic and the layout of fragments are in C (run/native/matrix.c, wmma.c), which reads and
writes the registers in place if they are contiguous, else copies in the scratch, 128 bytes each.
`.sync` synchronises the lanes before the instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from evoengine.emulator.analyse.fragments import names_of
from evoengine.emulator.analyse.registers import registers_of as registers_in
from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.lower.load_store import items_of
from evoengine.emulator.lower.warp import sync
from evoengine.emulator.ptx.syntax import Instruction, Operand

# Distance of the copies of a, b, c and d in the scratch: 8 registers of 32 lanes at most, or 4 of
# f64.
FRAGMENT_BYTES = 1024

# mma.sync, PTX ISA 9.7.14.5: registers of a and b by shape and type of a.
_MMA_OPERANDS = {
    **{("m16n8k16", type_): (4, 2) for type_ in ("f16", "bf16")},
    **{("m16n8k8", type_): (2, 1) for type_ in ("f16", "bf16")},
    ("m16n8k8", "tf32"): (4, 2),
    ("m16n8k4", "tf32"): (2, 1),
    **{("m16n8k32", type_): (4, 2) for type_ in ("e4m3", "e5m2", "s8", "u8")},
    **{("m16n8k16", type_): (2, 1) for type_ in ("e4m3", "e5m2", "s8", "u8")},
    ("m8n8k4", "f64"): (1, 1),
}
_ACCUMULATORS = {"f32": 4, "s32": 4, "f16": 2, "f64": 2}
_MMA_TYPES = {  # of d and c, and of a and b
    "f32": ("f16", "bf16", "tf32", "e4m3", "e5m2"),
    "f16": ("f16", "e4m3", "e5m2"),
    "s32": ("s8", "u8"),
    "f64": ("f64",),
}
_NAMED_BY_BOTH = ("e4m3", "e5m2", "s8", "u8")

# wmma, 9.7.14.4: registers of a and b by shape and type.
WMMA_OPERANDS = {
    **{(shape, "f16"): (8, 8) for shape in ("m16n16k16", "m32n8k16", "m8n32k16")},
    ("m16n16k16", "bf16"): (4, 4),
    ("m32n8k16", "bf16"): (8, 2),
    ("m8n32k16", "bf16"): (2, 8),
    ("m16n16k8", "tf32"): (4, 4),
    **{("m16n16k16", type_): (2, 2) for type_ in ("s8", "u8")},
    **{("m32n8k16", type_): (4, 1) for type_ in ("s8", "u8")},
    **{("m8n32k16", type_): (1, 4) for type_ in ("s8", "u8")},
}
WMMA_ACCUMULATORS = {"f32": 8, "s32": 8, "f16": 4}


# ---------------------------------------------------------------- products


def multiply(cx: LoweringContext, instruction: Instruction) -> None:
    """mma.sync.aligned.SHAPE.row.col[.satfinite].D.A.B.C d, a, b, c."""
    shape, saturates = shape_of(cx), instruction.has("satfinite")
    d, a, b, c = instruction.modifiers[-4:]
    known = (
        (shape, a) in _MMA_OPERANDS and d == c and a in _MMA_TYPES.get(d, ()) and b in _MMA_TYPES[d]
    )
    same = a == b or (a in _NAMED_BY_BOTH and b in _NAMED_BY_BOTH)
    if (
        not known
        or not same
        or (shape, d, a in ("e4m3", "e5m2")) == ("m16n8k16", "f16", True)
        or (saturates and d != "s32")
    ):
        raise cx.unsupported()
    by_both = f"{a}_{b}" if a in _NAMED_BY_BOTH else a
    name = (
        "ev_mma_m8n8k4_f64"
        if d == "f64"
        else f"ev_mma_{shape}_{'satfinite_' if saturates else ''}{d}_{by_both}"
    )
    _product(cx, name, (*_MMA_OPERANDS[shape, a], _ACCUMULATORS[d]))


def _product(cx: LoweringContext, name: str, counts: tuple[int, int, int]) -> None:
    """Calls C function `name`(a, b, c, d); `counts`: how many registers a, b, and each of c and d
    have.
    """
    sync(cx)
    operands = cx.instruction.operands
    pointers = [
        operand_pointer(cx, operand, count, place * FRAGMENT_BYTES)
        for place, (operand, count) in enumerate(zip(operands[1:4], counts, strict=True))
    ]
    with result_pointer(cx, counts[2], sources=operands[1:4]) as out:
        cx.ir.call("void", name, *(("ptr", pointer) for pointer in [*pointers, out]))


def operand_pointer(cx: LoweringContext, operand: Operand, count: int, offset: int) -> str:
    """A pointer to the vectors of an operand of `count` registers: their slots if these are
    contiguous, else copies at byte `offset` of the scratch.
    """
    names = names_of(operand)
    slots = cx.contiguous_slots(names) if len(names) == count else None
    return slots or cx.rows(offset, _bits(cx), registers_of(cx, operand, count))


@contextmanager
def result_pointer(
    cx: LoweringContext, count: int, sources: Sequence[Operand] = ()
) -> Iterator[str]:
    """A pointer to where C code stores the `count` registers of the result: their slots if these
    are contiguous, else scratch from which they are written afterwards.

    The result may be the same registers as the last of `sources`, but must not share a register
    with the others, which are read while it is written.
    """
    names = names_of(cx.instruction.operands[0])
    others = [register.name for operand in sources for register in registers_in(operand)]
    if sources and names_of(sources[-1]) == names:
        others = others[: -len(names)]
    whole = len(names) == count and not any(
        name in others or cx.preserves_inactive(name) for name in names
    )
    slots = cx.contiguous_slots(names) if whole else None
    if slots:
        yield slots
        return
    bits = _bits(cx)
    out = cx.rows(3 * FRAGMENT_BYTES, bits, ())
    yield out
    write_all(cx, [Value(VARYING, text, bits) for text in cx.from_rows(out, bits, count)])


def _bits(cx: LoweringContext) -> int:
    """The width in bits of the registers of the current instruction."""
    return 64 if cx.instruction.type == "f64" else 32


def write_all(cx: LoweringContext, values: list[Value]) -> None:
    """Writes `values` to the registers of the result."""
    targets = items_of(cx.instruction.operands[0])
    if len(targets) != len(values):
        raise cx.unsupported(f"its result has {len(values)} registers")
    for target, value in zip(targets, values, strict=True):
        cx.write(target, value)


def registers_of(cx: LoweringContext, operand: Operand, count: int) -> list[str]:
    """The vectors of an operand of `count` registers."""
    items = items_of(operand)
    if len(items) != count:
        raise cx.unsupported(f"{len(items)} registers, expected {count}")
    return [cx.vector(item, _bits(cx)) for item in items]


def shape_of(cx: LoweringContext) -> str:
    """The matrix shape, e.g. m16n16k16; empty if the instruction has none."""
    return next(
        (item for item in cx.instruction.modifiers if re.fullmatch(r"m\d+n\d+(k\d+)?", item)), ""
    )


def wmma_multiply(cx: LoweringContext, instruction: Instruction) -> None:
    """wmma.mma.sync.aligned.ALAYOUT.BLAYOUT.SHAPE.D[.A.B].C[.satfinite]: the fragments are the same
    for both layouts.
    """
    shape, saturates = shape_of(cx), instruction.has("satfinite")
    types = [
        item
        for item in instruction.modifiers[instruction.modifiers.index(shape) + 1 :]
        if item != "satfinite"
    ]
    d, a, b, c = types if len(types) == 4 else (types[0], "f16", "f16", types[-1])
    accumulators = {
        "f16": ("f32", "f16"),
        "bf16": ("f32",),
        "tf32": ("f32",),
        "s8": ("s32",),
        "u8": ("s32",),
    }.get(a, ())
    if (
        (shape, a) not in WMMA_OPERANDS
        or a != b
        or d not in accumulators
        or c not in accumulators
        or (saturates and d != "s32")
    ):
        raise cx.unsupported()
    counts = (*WMMA_OPERANDS[shape, a], WMMA_ACCUMULATORS[c])
    if d == c:
        _product(cx, f"ev_wmma_mma_{shape}_{'satfinite_' if saturates else ''}{d}_{a}", counts)
    else:
        _wmma_mixed(cx, shape, counts, narrow_result=d == "f16")


def _wmma_mixed(
    cx: LoweringContext, shape: str, counts: tuple[int, int, int], *, narrow_result: bool
) -> None:
    """d and c of different types: summed in f32."""
    a, b, c = (
        registers_of(cx, operand, count)
        for operand, count in zip(cx.instruction.operands[1:4], counts, strict=True)
    )
    if not narrow_result:
        c = [half for pair in c for half in _widened(cx, pair)]
    sync(cx)
    pointers = [
        cx.rows(place * FRAGMENT_BYTES, 32, registers) for place, registers in enumerate((a, b, c))
    ]
    out = cx.rows(3 * FRAGMENT_BYTES, 32, ())
    cx.ir.call(
        "void", f"ev_wmma_mma_{shape}_f32_f16", *(("ptr", pointer) for pointer in [*pointers, out])
    )
    found = cx.from_rows(out, 32, WMMA_ACCUMULATORS["f32"])
    if narrow_result:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [
            cx.call_lanes("ev_cvt_rn_f16x2_f32", [(32, high), (32, low)], [32])[0]
            for low, high in pairs
        ]
    write_all(cx, [Value(VARYING, text, 32) for text in found])


def _widened(cx: LoweringContext, pair: str) -> list[str]:
    """The two halves of an f16x2 register as f32."""
    found = []
    for by in (0, 16):
        low = cx.ir.get(f"lshr {integer(32, True)} {pair}, splat (i32 {by})") if by else pair
        half = cx.ir.get(f"trunc {integer(32, True)} {low} to {integer(16, True)}")
        found += cx.call_lanes("ev_cvt_f32_f16", [(16, half)], [32])
    return found


HANDLERS = {"mma": multiply}
