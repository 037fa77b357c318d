"""Matrices between memory and the registers of a warp: wmma.load and store, ldmatrix, stmatrix,
movmatrix.

No tile leaves the arena: its pitch is limited, so that a tile is smaller than the arena, and a tile
that would reach beyond the end is moved to end there. This never changes a tile of a correct
kernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evoengine.emulator.analyse.uniformity import UNIFORM, VARYING
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.lower.load_store import (
    READ,
    WRITE,
    check_access,
    locate,
    mask_into_arena,
    space_of,
)
from evoengine.emulator.lower.matrix import (
    FRAGMENT_BYTES,
    WMMA_ACCUMULATORS,
    WMMA_OPERANDS,
    operand_pointer,
    result_pointer,
    shape_of,
    wmma_multiply,
    write_all,
)
from evoengine.emulator.lower.warp import sync
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Integer, Operand

MAX_LINES, MAX_ELEMENT_BYTES = 32, 4  # of a tile
LINE_PIECE_BYTES = 16  # what one lane accesses at once, when a tile is reported to the checker
ROW_BYTES = 16  # of an 8 x 8 matrix of b16
_WMMA_SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8")


def wmma(cx: LoweringContext, instruction: Instruction) -> None:
    """wmma.load, wmma.store, wmma.mma."""
    if shape_of(cx) not in _WMMA_SHAPES:
        raise cx.unsupported()
    match instruction.modifiers[0]:
        case "mma":
            wmma_multiply(cx, instruction)
        case "load":
            _wmma_load(cx, instruction)
        case "store":
            _wmma_store(cx, instruction)
        case _:
            raise cx.unsupported()


@dataclass(frozen=True)
class _Tile:
    """A matrix in memory: `lines` contiguous rows or columns of `length` bytes, `pitch` bytes
    apart.
    """

    lines: int
    length: int
    pitch: str  # i64
    stride: str  # i64, the same in elements
    host: str  # i64: host address of its start, masked into the arena
    in_space: str  # i64: the same, as an address in `space`
    space: str


def _tile(
    cx: LoweringContext, which: str, type_: str, address: Operand, stride: tuple[Operand, ...]
) -> _Tile:
    ir, instruction = cx.ir, cx.instruction
    lines, across = _extent(shape_of(cx), which, instruction.has("row"))
    size = TYPE_BITS[type_] // 8
    requested_stride = _uniform(cx, cx.read(stride[0] if stride else Integer(across), 32))
    most = (1 << cx.layout.arena_bits) // (2 * MAX_LINES * MAX_ELEMENT_BYTES)
    elements = ir.intrinsic("umin", "i64", ir.get(f"zext i32 {requested_stride} to i64"), str(most))
    pitch = ir.get(f"mul i64 {elements}, {size}")
    place = locate(cx, address, space_of(instruction))
    begin = mask_into_arena(cx, Value(UNIFORM, _uniform(cx, place.host), 64)).text
    reach = ir.get(f"add i64 {ir.get(f'mul i64 {pitch}, {lines - 1}')}, {across * size}")
    last = ir.get(f"sub i64 {cx.layout.arena_base + (1 << cx.layout.arena_bits)}, {reach}")
    return _Tile(
        lines,
        across * size,
        pitch,
        elements,
        ir.intrinsic("umin", "i64", begin, last),
        _uniform(cx, place.in_space),
        place.space,
    )


def _extent(shape: str, which: str, by_rows: bool) -> tuple[int, int]:
    """(lines, elements of a line) of a matrix of a shape."""
    m, n, k = (int(number) for number in re.findall(r"\d+", shape))
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[which]
    return (rows, columns) if by_rows else (columns, rows)


def _uniform(cx: LoweringContext, value: Value) -> str:
    """The value of an operand that must be uniform, as a scalar."""
    return value.text if value.variance is UNIFORM else cx.first_active(value)


def _is_allowed(cx: LoweringContext, tile: _Tile, kind: int) -> str:
    """Whether the tile may be accessed, as an i1. It is reported to the checker as pieces of lines,
    one a lane.
    """
    ir = cx.ir
    piece = min(LINE_PIECE_BYTES, tile.length)
    pieces, in_a_line = tile.lines * tile.length // piece, tile.length // piece
    allowed = ir.get(f"icmp ne i32 {cx.mask_bits}, 0")
    if not cx.checked:
        return allowed
    kind64 = integer(64, True)
    for first in range(0, pieces, LANES):
        numbers = [min(first + lane, pieces - 1) for lane in range(LANES)]
        lines = "<" + ", ".join(f"i64 {number // in_a_line}" for number in numbers) + ">"
        columns = "<" + ", ".join(f"i64 {number % in_a_line * piece}" for number in numbers) + ">"
        down = ir.get(f"mul {kind64} {lines}, {ir.splat(tile.pitch, 'i64')}")
        start = ir.get(f"add {kind64} {ir.splat(tile.in_space, 'i64')}, {columns}")
        addresses = ir.get(f"add {kind64} {start}, {down}")
        requested = (
            ir.get(f"and i32 {cx.mask_bits}, {(1 << min(LANES, pieces - first)) - 1}")
            if pieces - first < LANES
            else cx.mask_bits
        )
        found = check_access(cx, tile.space, kind, piece, addresses, requested)
        allowed = ir.get(f"and i1 {allowed}, {ir.get(f'icmp eq i32 {found}, {requested}')}")
    return allowed


def _call_for_tile(cx: LoweringContext, name: str, tile: _Tile, registers: str, kind: int) -> None:
    """Calls C code for the whole tile, or not at all."""
    row_major = str(int(cx.instruction.has("row")))
    pointer = cx.ir.get(f"inttoptr i64 {tile.host} to ptr")
    arguments = (("ptr", pointer), ("i64", tile.stride), ("i32", row_major), ("ptr", registers))
    if cx.checked or cx.instruction.guard:
        with cx.only_if(_is_allowed(cx, tile, kind)):
            cx.ir.call("void", name, *arguments)
    else:
        cx.ir.call("void", name, *arguments)


def _wmma_load(cx: LoweringContext, instruction: Instruction) -> None:
    """wmma.load.{a,b,c}.sync.aligned.LAYOUT.SHAPE[.SPACE].TYPE r, [p][, stride]."""
    which, shape, type_ = instruction.modifiers[1], shape_of(cx), instruction.type
    if which == "c":
        count, name = _accumulator(cx, type_, "load_c")
    elif (shape, type_) in WMMA_OPERANDS:
        count, name = (
            WMMA_OPERANDS[shape, type_]["ab".index(which)],
            f"ev_wmma_load_{which}_{shape}_{'s8' if type_ == 'u8' else type_}",
        )
    else:
        raise cx.unsupported()
    sync(cx)
    tile = _tile(cx, which, type_, instruction.operands[1], instruction.operands[2:])
    with result_pointer(cx, count) as out:
        if cx.checked:
            cx.ir.do(f"store [{count} x {integer(32, True)}] zeroinitializer, ptr {out}, align 64")
        _call_for_tile(cx, name, tile, out, READ)


def _wmma_store(cx: LoweringContext, instruction: Instruction) -> None:
    """wmma.store.d.sync.aligned.LAYOUT.SHAPE[.SPACE].TYPE [p], r[, stride]."""
    count, name = _accumulator(cx, instruction.type, "store_d")
    sync(cx)
    tile = _tile(cx, "d", instruction.type, instruction.operands[0], instruction.operands[2:])
    registers = operand_pointer(cx, instruction.operands[1], count, 3 * FRAGMENT_BYTES)
    _call_for_tile(cx, name, tile, registers, WRITE)


def _accumulator(cx: LoweringContext, type_: str, how: str) -> tuple[int, str]:
    """Registers of c or d, and the C function: m16n16k8 has the layout of m16n16k16, s32 that of
    f32.
    """
    if type_ not in WMMA_ACCUMULATORS:
        raise cx.unsupported()
    shape = shape_of(cx).replace("m16n16k8", "m16n16k16")
    return WMMA_ACCUMULATORS[type_], f"ev_wmma_{how}_{shape}_{'f32' if type_ == 's32' else type_}"


# ---------------------------------------------------------------- ldmatrix and its kin


def _count(cx: LoweringContext) -> int:
    """How many 8 x 8 matrices of b16 an instruction moves."""
    instruction = cx.instruction
    count = next((number for number in (1, 2, 4) if instruction.has(f"x{number}")), 0)
    if not count or not instruction.has("m8n8") or instruction.type != "b16":
        raise cx.unsupported()
    return count


def _rows(cx: LoweringContext, operand: Operand, count: int, kind: int) -> str:
    """A pointer to the host addresses of the rows, 32 x i64; those of lanes that are inactive or
    not allowed point to spare scratch.
    """
    ir, kind64 = cx.ir, integer(64, True)
    place = locate(cx, operand, space_of(cx.instruction))
    addresses = cx.as_vector(mask_into_arena(cx, place.host))
    mask = cx.mask
    if cx.checked:
        requested = (
            ir.get(f"and i32 {cx.mask_bits}, {(1 << 8 * count) - 1}") if count < 4 else cx.mask_bits
        )
        in_space = cx.as_vector(place.in_space)
        allowed = check_access(cx, place.space, kind, ROW_BYTES, in_space, requested)
        mask = ir.get(f"bitcast i32 {allowed} to <{LANES} x i1>")
    if mask is not None:
        spare = ir.get(
            f"ptrtoint ptr {cx.rows(2 * FRAGMENT_BYTES, 32, ['zeroinitializer'])} to i64"
        )
        addresses = ir.get(
            f"select <{LANES} x i1> {mask}, {kind64} {addresses}, {kind64} {ir.splat(spare, 'i64')}"
        )
    return cx.rows(0, 64, [addresses])


def load_matrix(cx: LoweringContext, instruction: Instruction) -> None:
    """ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans][.shared].b16 r, [p]."""
    count = _count(cx)
    sync(cx)
    rows = _rows(cx, instruction.operands[1], count, READ)
    with result_pointer(cx, count) as out:
        cx.ir.call(
            "void",
            "ev_ldmatrix",
            ("ptr", rows),
            ("i32", str(count)),
            ("i32", str(int(instruction.has("trans")))),
            ("ptr", out),
        )


def store_matrix(cx: LoweringContext, instruction: Instruction) -> None:
    """stmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans][.shared].b16 [p], r."""
    count = _count(cx)
    sync(cx)
    rows = _rows(cx, instruction.operands[0], count, WRITE)
    registers = operand_pointer(cx, instruction.operands[1], count, 3 * FRAGMENT_BYTES)
    cx.ir.call(
        "void",
        "ev_stmatrix",
        ("ptr", rows),
        ("i32", str(count)),
        ("i32", str(int(instruction.has("trans")))),
        ("ptr", registers),
    )


def move_matrix(cx: LoweringContext, instruction: Instruction) -> None:
    """movmatrix.sync.aligned.m8n8.trans.b16 d, a: a register of all lanes, stored, is the matrix
    row by row.
    """
    sync(cx)
    matrix = cx.rows(2 * FRAGMENT_BYTES, 32, [cx.vector(instruction.operands[1], 32)])
    start = cx.ir.splat(cx.ir.get(f"ptrtoint ptr {matrix} to i64"), "i64")
    offsets = "<" + ", ".join(f"i64 {lane % 8 * ROW_BYTES}" for lane in range(LANES)) + ">"
    rows = cx.rows(0, 64, [cx.ir.get(f"add {integer(64, True)} {start}, {offsets}")])
    out = cx.rows(3 * FRAGMENT_BYTES, 32, ())
    cx.ir.call("void", "ev_ldmatrix", ("ptr", rows), ("i32", "1"), ("i32", "1"), ("ptr", out))
    write_all(cx, [Value(VARYING, cx.from_rows(out, 32, 1)[0], 32)])


HANDLERS = {
    "wmma": wmma,
    "ldmatrix": load_matrix,
    "stmatrix": store_matrix,
    "movmatrix": move_matrix,
}
