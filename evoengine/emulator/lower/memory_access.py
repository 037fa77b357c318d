"""Loads and stores, in the fastest form for the variance of the address.

One scalar access if the address is uniform, one vector access if the addresses are affine and
contiguous, else gathers and scatters. Every address is masked into the arena here.
"""

from __future__ import annotations

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, Affine, Variance
from evoengine.emulator.lower.address import LaneAddresses, mask_base_into_arena, mask_into_arena
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.lower.packed_words import items_of_words, words_of_items
from evoengine.emulator.lower.scratch import SLOT_BYTES
from evoengine.emulator.lower.value import Value

WORD_BYTES, PAIR_BYTES = 4, 8
ROW_BYTES = 16  # what C code moves at once for a lane
# The guard area after the arena has room for 32 lanes of this; run/memory.py has its size.
DENSE_LIMIT_BYTES = 16


def load_values(
    cx: LoweringContext, lane_addresses: LaneAddresses, bits: int, count: int
) -> list[Value]:
    """Loads `count` consecutive values of `bits` bits from each lane's address."""
    variance, size = lane_addresses.host.variance, bits // 8
    if variance is UNIFORM and not cx.checked:
        return [
            Value(UNIFORM, text, bits)
            for text in _load_scalars(
                cx, mask_base_into_arena(cx, lane_addresses.host), bits, count
            )
        ]
    if _is_dense(variance, size * count) and (cx.mask is None or count == 1):
        return [
            Value(VARYING, text, bits)
            for text in _load_dense(cx, mask_base_into_arena(cx, lane_addresses.host), bits, count)
        ]
    vector = cx.as_vector(mask_into_arena(cx, lane_addresses.host))
    if size * count % PAIR_BYTES == 0 and count > 1:
        return [
            Value(VARYING, text, bits)
            for text in items_of_words(cx.ir, _load_words(cx, vector, size * count), bits)
        ]
    return [
        Value(VARYING, gather(cx, _offset(cx, vector, size * item), bits), bits)
        for item in range(count)
    ]


def _is_dense(variance: Variance, size: int) -> bool:
    return isinstance(variance, Affine) and variance.stride == size <= DENSE_LIMIT_BYTES


def _offset(cx: LoweringContext, vector: str, size: int) -> str:
    return cx.ir.get(f"add {integer(64, True)} {vector}, splat (i64 {size})") if size else vector


def _load_words(cx: LoweringContext, addresses: str, size: int) -> list[str]:
    """Loads `size` bytes from masked addresses <32 x i64>, as vectors <32 x i32>."""
    found: list[str] = []
    for offset in range(0, size, ROW_BYTES):
        count = min(ROW_BYTES, size - offset) // WORD_BYTES
        pointer, out = cx.rows(0, 64, [_offset(cx, addresses, offset)]), cx.rows(SLOT_BYTES, 32, ())
        cx.ir.call(
            "void", f"ev_load_words_{count}", ("ptr", pointer), ("i32", cx.mask_bits), ("ptr", out)
        )
        found += cx.from_rows(out, 32, count)
    return found


def _store_words(cx: LoweringContext, addresses: str, words: list[str]) -> None:
    for first in range(0, len(words), ROW_BYTES // WORD_BYTES):
        row = words[first : first + ROW_BYTES // WORD_BYTES]
        pointer, values = (
            cx.rows(0, 64, [_offset(cx, addresses, WORD_BYTES * first)]),
            cx.rows(SLOT_BYTES, 32, row),
        )
        cx.ir.call(
            "void",
            f"ev_store_words_{len(row)}",
            ("ptr", pointer),
            ("i32", cx.mask_bits),
            ("ptr", values),
        )


def _load_scalars(cx: LoweringContext, address: str, bits: int, count: int) -> list[str]:
    """Loads the lanes' common values; only if some lane runs, so that an unused address is not
    accessed.
    """
    ir = cx.ir
    if cx.instruction.guard:
        some, safe = ir.get(f"icmp ne i32 {cx.mask_bits}, 0"), ir.get("ptrtoint ptr %params to i64")
        address = ir.get(f"select i1 {some}, i64 {address}, i64 {safe}")
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    found = []
    for item in range(count):
        at = ir.get(f"getelementptr i8, ptr {pointer}, i64 {item * bits // 8}") if item else pointer
        found.append(ir.get(f"load i{bits}, ptr {at}, align 1"))
    return found


def _load_dense(cx: LoweringContext, address: str, bits: int, count: int) -> list[str]:
    ir = cx.ir
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    total = LANES * count
    if cx.mask is not None:
        type_ = integer(bits, True)
        name = f"@llvm.masked.load.v{LANES}i{bits}.p0"
        ir.declarations[name] = f"declare {type_} {name}(ptr, i32, <{LANES} x i1>, {type_})"
        return [
            ir.get(
                f"call {type_} {name}(ptr {pointer}, i32 1, <{LANES} x i1> {cx.mask}, {type_}"
                " zeroinitializer)"
            )
        ]
    whole = ir.get(f"load <{total} x i{bits}>, ptr {pointer}, align 1")
    if count == 1:
        return [whole]
    picks = [
        ", ".join(f"i32 {lane * count + item}" for lane in range(LANES)) for item in range(count)
    ]
    poison = f"<{total} x i{bits}> poison"
    return [
        ir.get(f"shufflevector <{total} x i{bits}> {whole}, {poison}, <{LANES} x i32> <{pick}>")
        for pick in picks
    ]


def gather(cx: LoweringContext, addresses: str, bits: int) -> str:
    """Loads <32 x i`bits`> from masked addresses <32 x i64>; inactive lanes get 0."""
    if bits < 32 and cx.vector_memory:
        # There is no gather of bytes or halves: 32 bits are read, which may reach into a red zone,
        # never beyond the arena and its guard area.
        return cx.ir.get(
            f"trunc {integer(32, True)} {gather(cx, addresses, 32)} to {integer(bits, True)}"
        )
    if not cx.vector_memory:
        pointer = cx.lanes(0, 64, addresses)
        out = cx.lanes(1, bits, "zeroinitializer")
        cx.ir.call(
            "void", f"ev_gather_{bits}", ("ptr", pointer), ("i32", cx.mask_bits), ("ptr", out)
        )
        return cx.from_lanes(out, bits)
    type_, ir = integer(bits, True), cx.ir
    pointers = ir.get(f"inttoptr {integer(64, True)} {addresses} to <{LANES} x ptr>")
    name = f"@llvm.masked.gather.v{LANES}i{bits}.v{LANES}p0"
    ir.declarations[name] = f"declare {type_} {name}(<{LANES} x ptr>, i32, <{LANES} x i1>, {type_})"
    mask = cx.mask or "splat (i1 true)"
    return ir.get(
        f"call {type_} {name}(<{LANES} x ptr> {pointers}, i32 1, <{LANES} x i1> {mask}, {type_}"
        " zeroinitializer)"
    )


def store_values(
    cx: LoweringContext, lane_addresses: LaneAddresses, values: list[Value], bits: int
) -> None:
    """Stores consecutive values of `bits` bits at each lane's address; if lanes write one address,
    the highest lane wins.
    """
    variance, size = lane_addresses.host.variance, bits // 8
    if variance is UNIFORM and not cx.checked:
        _store_scalars(cx, mask_base_into_arena(cx, lane_addresses.host), values, bits)
        return
    if _is_dense(variance, size * len(values)) and (cx.mask is None or len(values) == 1):
        _store_dense(
            cx,
            mask_base_into_arena(cx, lane_addresses.host),
            [cx.as_vector(value) for value in values],
            bits,
        )
        return
    vector, vectors = (
        cx.as_vector(mask_into_arena(cx, lane_addresses.host)),
        [cx.as_vector(value) for value in values],
    )
    if size * len(values) % PAIR_BYTES == 0 and len(values) > 1:
        _store_words(cx, vector, words_of_items(cx.ir, vectors, bits))
        return
    for item, text in enumerate(vectors):
        scatter(cx, _offset(cx, vector, size * item), text, bits)


def _store_scalars(cx: LoweringContext, address: str, values: list[Value], bits: int) -> None:
    if cx.mask is None:
        _store_each(cx, address, values, bits)
        return
    with cx.only_if(cx.ir.get(f"icmp ne i32 {cx.mask_bits}, 0")):
        _store_each(cx, address, values, bits)


def _store_each(cx: LoweringContext, address: str, values: list[Value], bits: int) -> None:
    ir = cx.ir
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    for item, value in enumerate(values):
        at = ir.get(f"getelementptr i8, ptr {pointer}, i64 {item * bits // 8}") if item else pointer
        ir.do(f"store i{bits} {_highest(cx, value)}, ptr {at}, align 1")


def _highest(cx: LoweringContext, value: Value) -> str:
    """The value of the highest active lane, as a scalar."""
    if value.variance is UNIFORM:
        return value.text
    lane = str(LANES - 1)
    if cx.mask is not None:
        zeros = cx.ir.intrinsic("ctlz", "i32", cx.mask_bits, also="i1 true")
        lane = cx.ir.get(f"sub i32 {LANES - 1}, {zeros}")
    return cx.ir.get(
        f"extractelement {integer(value.bits, True)} {cx.as_vector(value)}, i32 {lane}"
    )


def _store_dense(cx: LoweringContext, address: str, vectors: list[str], bits: int) -> None:
    ir = cx.ir
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    type_ = integer(bits, True)
    if cx.mask is not None:
        name = f"@llvm.masked.store.v{LANES}i{bits}.p0"
        ir.declarations[name] = f"declare void {name}({type_}, ptr, i32, <{LANES} x i1>)"
        ir.do(
            f"call void {name}({type_} {vectors[0]}, ptr {pointer}, i32 1, <{LANES} x i1>"
            f" {cx.mask})"
        )
        return
    whole, width = _interleaved(cx, vectors, LANES, bits)
    ir.do(f"store <{width} x i{bits}> {whole}, ptr {pointer}, align 1")


def _interleaved(cx: LoweringContext, vectors: list[str], width: int, bits: int) -> tuple[str, int]:
    """a0 b0 a1 b1 ... of 2^n vectors of `width` elements each, and how many elements that has."""
    if len(vectors) == 1:
        return vectors[0], width
    (a, half), (b, _) = (_interleaved(cx, vectors[start::2], width, bits) for start in (0, 1))
    order = ", ".join(f"i32 {index // 2 + (index % 2) * half}" for index in range(2 * half))
    return (
        cx.ir.get(
            f"shufflevector <{half} x i{bits}> {a}, <{half} x i{bits}> {b}, <{2 * half} x i32>"
            f" <{order}>"
        ),
        2 * half,
    )


def scatter(cx: LoweringContext, addresses: str, value: str, bits: int) -> None:
    """Stores <32 x i`bits`> at masked addresses <32 x i64>, lower lanes first."""
    if bits < 32 or not cx.vector_memory:
        pointer, values = cx.lanes(0, 64, addresses), cx.lanes(1, bits, value)
        cx.ir.call(
            "void", f"ev_scatter_{bits}", ("ptr", pointer), ("i32", cx.mask_bits), ("ptr", values)
        )
        return
    type_, ir = integer(bits, True), cx.ir
    pointers = ir.get(f"inttoptr {integer(64, True)} {addresses} to <{LANES} x ptr>")
    name = f"@llvm.masked.scatter.v{LANES}i{bits}.v{LANES}p0"
    ir.declarations[name] = f"declare void {name}({type_}, <{LANES} x ptr>, i32, <{LANES} x i1>)"
    mask = cx.mask or "splat (i1 true)"
    ir.do(
        f"call void {name}({type_} {value}, <{LANES} x ptr> {pointers}, i32 1, <{LANES} x i1>"
        f" {mask})"
    )
