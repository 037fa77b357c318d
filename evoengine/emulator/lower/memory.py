"""ld, st, cvta, isspacep, prefetch: addresses confined to the reservation, and the fastest way for each shape of address.

One scalar access where all lanes have one address, a plain vector access where the addresses
are a dense ramp, gathers and scatters otherwise. In checked mode the checker is asked first and
says which lanes may go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.analyse.uniform import UNIFORM, VARYING, Ramp, Shape
from evoengine.emulator.lower.context import Context, Value, literal
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.ptx.program import TYPE_BITS, Address, Instruction, Integer, Operand, Register, Sink, Symbol, Vector

SPACES = {"global": 0, "const": 0, "param": 0, "shared": 1, "local": 2, "generic": 3}  # as check/checker.h numbers them
READ, WRITE, ATOMIC, STRONG_READ, STRONG_WRITE = 0, 1, 2, 3, 4  # as check/checker.h numbers them
STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")
DENSE_LIMIT_BYTES = 16  # a ramp of more than that a lane could leave the guard pages behind the reservation
HINTS = ("u8", "s8", "b8")


@dataclass(frozen=True)
class Place:
    """The host address of every lane, and where an access stands in its own space."""

    value: Value  # host address, 64 bits, not confined yet
    own: Value  # offset in the shared window or the thread's frame, address otherwise; 64 bits
    space: str


def space_of(instruction: Instruction) -> str:
    """The state space that an instruction names."""
    for modifier in instruction.modifiers:
        space = modifier.partition("::")[0]
        if space in ("global", "shared", "local", "const", "param"):
            return space
    return "generic"


def locate(cx: Context, operand: Operand, space: str) -> Place:
    """Where an address operand points."""
    if not isinstance(operand, Address):
        raise cx.unsupported(f"address {operand}")
    own = _own(cx, operand)
    if space == "shared":
        return Place(plus(cx, own, "%shared"), own, space)
    if space == "local":
        host = plus(cx, own, "%local_base")
        frame = cx.layout.frame_bytes
        if host.shape is UNIFORM:
            return Place(Value(Ramp(frame), host.text, 64), own, space)
        steps = "<" + ", ".join(f"i64 {lane * frame}" for lane in range(LANES)) + ">"
        return Place(Value(VARYING, cx.ir.get(f"add {integer(64, True)} {cx.spread(host)}, {steps}"), 64), own, space)
    return Place(own, own, space)


def _own(cx: Context, operand: Address) -> Value:
    match operand.base:
        case Symbol():
            base = cx.address_of(operand.base)
        case Integer(number):
            base = Value(UNIFORM, literal(number, 64), 64)
        case Register():
            base = cx.read(operand.base, 64)
    if not operand.offset:
        return base
    return plus(cx, base, str(operand.offset))


def plus(cx: Context, value: Value, amount: str) -> Value:
    """A 64-bit value plus a scalar."""
    if value.shape is VARYING:
        splat = cx.ir.splat(amount, "i64")
        return Value(VARYING, cx.ir.get(f"add {integer(64, True)} {value.text}, {splat}"), 64)
    return Value(value.shape, cx.ir.get(f"add i64 {value.text}, {amount}"), 64)


def confine(cx: Context, value: Value) -> Value:
    """The same address if it lies in the reservation, else some other one that does."""
    mask, base = (1 << cx.layout.arena_bits) - 1, cx.layout.arena_base
    vector = value.shape is VARYING
    low, high = (f"splat (i64 {mask})", f"splat (i64 {base})") if vector else (str(mask), str(base))
    type_ = integer(64, vector)
    inside = cx.ir.get(f"and {type_} {value.text}, {low}")
    return Value(value.shape, cx.ir.get(f"or {type_} {inside}, {high}"), 64)


def check(cx: Context, place: Place, kind: int, size: int) -> None:
    """Asks the checker; from here on only the lanes that it lets through run this instruction."""
    if not cx.checked:
        return
    cx.mask_bits = ask(cx, place.space, kind, size, cx.spread(place.own), cx.mask_bits)
    cx.mask = cx.ir.get(f"bitcast i32 {cx.mask_bits} to <{LANES} x i1>")


def ask(cx: Context, space: str, kind: int, size: int, addresses: str, mask_bits: str) -> str:
    """The lanes of `mask_bits` that the checker lets touch `size` bytes at their addresses: <32 x i64> in their own space."""
    return cx.ir.call(
        "i32",
        "ev_check_access",
        ("ptr", "%checker"),
        ("i32", "%warp_index"),
        ("i32", mask_bits),
        ("i32", str(SPACES[space])),
        ("i32", str(kind)),
        ("i32", str(size)),
        ("ptr", cx.lanes(0, 64, addresses)),
        ("i32", str(cx.site(cx.instruction))),
    )


def _kind(instruction: Instruction, plain: int, strong: int) -> int:
    return strong if any(instruction.has(item) for item in STRONG) else plain


def restored(cx: Context) -> tuple[str | None, str]:
    """The mask now, to be put back behind an access."""
    return cx.mask, cx.mask_bits


# ---------------------------------------------------------------- loads


def load(cx: Context, instruction: Instruction) -> None:
    """ld, ldu: one to four values a lane."""
    if space_of(instruction) == "param" and _is_parameter(cx, instruction.operands[1]):
        _load_parameter(cx, instruction)
        return
    bits, targets = TYPE_BITS[instruction.type], items_of(instruction.operands[0])
    place = locate(cx, instruction.operands[1], space_of(instruction))
    before = restored(cx)
    check(cx, place, _kind(instruction, READ, STRONG_READ), bits // 8 * len(targets))
    values = _loaded(cx, place, bits, len(targets))
    cx.mask, cx.mask_bits = before
    for target, value in zip(targets, values, strict=True):
        cx.write(target, value, signed=instruction.type.startswith("s"))


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The items of a vector operand, or the operand alone."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def _loaded(cx: Context, place: Place, bits: int, count: int) -> list[Value]:
    address, size = confine(cx, place.value), bits // 8
    if address.shape is UNIFORM and not cx.checked:
        return [Value(UNIFORM, text, bits) for text in _load_scalars(cx, address.text, bits, count)]
    if _is_dense(address.shape, size * count) and (cx.mask is None or count == 1):
        return [Value(VARYING, text, bits) for text in _load_dense(cx, address.text, bits, count)]
    vector = cx.spread(address)
    return [Value(VARYING, gather(cx, _offset(cx, vector, size * item), bits), bits) for item in range(count)]


def _load_scalars(cx: Context, address: str, bits: int, count: int) -> list[str]:
    """The lanes' common value; read only where some lane runs, so that an address nobody uses is not touched."""
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


def _is_dense(shape: Shape, size: int) -> bool:
    return isinstance(shape, Ramp) and shape.stride == size <= DENSE_LIMIT_BYTES


def _load_dense(cx: Context, address: str, bits: int, count: int) -> list[str]:
    ir = cx.ir
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    total = LANES * count
    if cx.mask is not None:
        type_ = integer(bits, True)
        name = f"@llvm.masked.load.v{LANES}i{bits}.p0"
        ir.declarations[name] = f"declare {type_} {name}(ptr, i32, <{LANES} x i1>, {type_})"
        return [ir.get(f"call {type_} {name}(ptr {pointer}, i32 1, <{LANES} x i1> {cx.mask}, {type_} zeroinitializer)")]
    whole = ir.get(f"load <{total} x i{bits}>, ptr {pointer}, align 1")
    if count == 1:
        return [whole]
    picks = [", ".join(f"i32 {lane * count + item}" for lane in range(LANES)) for item in range(count)]
    poison = f"<{total} x i{bits}> poison"
    return [ir.get(f"shufflevector <{total} x i{bits}> {whole}, {poison}, <{LANES} x i32> <{pick}>") for pick in picks]


def _offset(cx: Context, vector: str, size: int) -> str:
    return cx.ir.get(f"add {integer(64, True)} {vector}, splat (i64 {size})") if size else vector


def gather(cx: Context, addresses: str, bits: int) -> str:
    """<32 x i`bits`> from <32 x i64> confined addresses; lanes that do not run get 0."""
    if bits < 32 and cx.vector_memory:
        # There is no gather of bytes or halves: 32 bits are read, which may reach into a red zone, never beyond the reservation.
        return cx.ir.get(f"trunc {integer(32, True)} {gather(cx, addresses, 32)} to {integer(bits, True)}")
    if not cx.vector_memory:
        pointer = cx.lanes(0, 64, addresses)
        out = cx.lanes(1, bits, "zeroinitializer")
        cx.ir.call("void", f"ev_gather_{bits}", ("ptr", pointer), ("i32", cx.mask_bits), ("ptr", out))
        return cx.from_lanes(out, bits)
    type_, ir = integer(bits, True), cx.ir
    pointers = ir.get(f"inttoptr {integer(64, True)} {addresses} to <{LANES} x ptr>")
    name = f"@llvm.masked.gather.v{LANES}i{bits}.v{LANES}p0"
    ir.declarations[name] = f"declare {type_} {name}(<{LANES} x ptr>, i32, <{LANES} x i1>, {type_})"
    mask = cx.mask or "splat (i1 true)"
    return ir.get(f"call {type_} {name}(<{LANES} x ptr> {pointers}, i32 1, <{LANES} x i1> {mask}, {type_} zeroinitializer)")


def _is_parameter(cx: Context, address: Operand) -> bool:
    """Whether an address is a parameter's name; otherwise it was computed, and points into the same buffer."""
    return isinstance(address, Address) and isinstance(address.base, Symbol) and address.base.name in cx.layout.parameters


def _load_parameter(cx: Context, instruction: Instruction) -> None:
    """ld.param of a kernel's parameter: the same for all."""
    address = instruction.operands[1]
    assert isinstance(address, Address)
    assert isinstance(address.base, Symbol)
    offset = cx.layout.parameters[address.base.name].offset + address.base.offset + address.offset
    bits = TYPE_BITS[instruction.type]
    pointer = cx.ir.get(f"getelementptr i8, ptr %params, i64 {offset}")
    for item, target in enumerate(items_of(instruction.operands[0])):
        at = cx.ir.get(f"getelementptr i8, ptr {pointer}, i64 {item * bits // 8}") if item else pointer
        value = Value(UNIFORM, cx.ir.get(f"load i{bits}, ptr {at}, align 1"), bits)
        cx.write(target, value, signed=instruction.type.startswith("s"))


# ---------------------------------------------------------------- stores


def store(cx: Context, instruction: Instruction) -> None:
    """st: one to four values a lane; where lanes write one address, the highest wins."""
    bits = TYPE_BITS[instruction.type]
    values = [cx.read(item, bits) for item in items_of(instruction.operands[1]) if not isinstance(item, Sink)]
    place = locate(cx, instruction.operands[0], space_of(instruction))
    if instruction.has("release") and not is_block_wide(instruction):
        fenced(cx)
    before = restored(cx)
    check(cx, place, _kind(instruction, WRITE, STRONG_WRITE), bits // 8 * len(values))
    _stored(cx, place, values, bits)
    cx.mask, cx.mask_bits = before


def _stored(cx: Context, place: Place, values: list[Value], bits: int) -> None:
    address, size = confine(cx, place.value), bits // 8
    if address.shape is UNIFORM and not cx.checked:
        _store_scalars(cx, address.text, values, bits)
        return
    if _is_dense(address.shape, size * len(values)) and (cx.mask is None or len(values) == 1):
        _store_dense(cx, address.text, [cx.spread(value) for value in values], bits)
        return
    vector = cx.spread(address)
    for item, value in enumerate(values):
        scatter(cx, _offset(cx, vector, size * item), cx.spread(value), bits)


def _store_scalars(cx: Context, address: str, values: list[Value], bits: int) -> None:
    ir = cx.ir
    after = ""
    if cx.mask is not None:
        some, do, after = ir.get(f"icmp ne i32 {cx.mask_bits}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {some}, label %{do}, label %{after}")
        ir.place(do)
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    for item, value in enumerate(values):
        at = ir.get(f"getelementptr i8, ptr {pointer}, i64 {item * bits // 8}") if item else pointer
        ir.do(f"store i{bits} {_highest(cx, value)}, ptr {at}, align 1")
    if after:
        ir.do(f"br label %{after}")
        ir.place(after)


def _highest(cx: Context, value: Value) -> str:
    """What the highest running lane has."""
    if value.shape is UNIFORM:
        return value.text
    lane = "31"
    if cx.mask is not None:
        zeros = cx.ir.intrinsic("ctlz", "i32", cx.mask_bits, also="i1 true")
        lane = cx.ir.get(f"sub i32 31, {zeros}")
    return cx.ir.get(f"extractelement {integer(value.bits, True)} {cx.spread(value)}, i32 {lane}")


def _store_dense(cx: Context, address: str, vectors: list[str], bits: int) -> None:
    ir, count = cx.ir, len(vectors)
    pointer = ir.get(f"inttoptr i64 {address} to ptr")
    type_ = integer(bits, True)
    if cx.mask is not None:
        name = f"@llvm.masked.store.v{LANES}i{bits}.p0"
        ir.declarations[name] = f"declare void {name}({type_}, ptr, i32, <{LANES} x i1>)"
        ir.do(f"call void {name}({type_} {vectors[0]}, ptr {pointer}, i32 1, <{LANES} x i1> {cx.mask})")
        return
    whole, width = vectors[0], LANES
    if count > 1:
        whole, width = _interleave(cx, vectors, bits)
    ir.do(f"store <{width} x i{bits}> {whole}, ptr {pointer}, align 1")


def _interleave(cx: Context, vectors: list[str], bits: int) -> tuple[str, int]:
    """a0 b0 a1 b1 ... of two or four vectors."""
    ir = cx.ir

    def zip_(a: str, b: str, width: int) -> str:
        order = ", ".join(f"i32 {index // 2 + (index % 2) * width}" for index in range(2 * width))
        return ir.get(f"shufflevector <{width} x i{bits}> {a}, <{width} x i{bits}> {b}, <{2 * width} x i32> <{order}>")

    if len(vectors) == 2:
        return zip_(vectors[0], vectors[1], LANES), 2 * LANES
    return zip_(zip_(vectors[0], vectors[2], LANES), zip_(vectors[1], vectors[3], LANES), 2 * LANES), 4 * LANES


def scatter(cx: Context, addresses: str, value: str, bits: int) -> None:
    """Stores <32 x i`bits`> at <32 x i64> confined addresses, lower lanes first."""
    if bits < 32 or not cx.vector_memory:
        pointer, values = cx.lanes(0, 64, addresses), cx.lanes(1, bits, value)
        cx.ir.call("void", f"ev_scatter_{bits}", ("ptr", pointer), ("i32", cx.mask_bits), ("ptr", values))
        return
    type_, ir = integer(bits, True), cx.ir
    pointers = ir.get(f"inttoptr {integer(64, True)} {addresses} to <{LANES} x ptr>")
    name = f"@llvm.masked.scatter.v{LANES}i{bits}.v{LANES}p0"
    ir.declarations[name] = f"declare void {name}({type_}, <{LANES} x ptr>, i32, <{LANES} x i1>)"
    mask = cx.mask or "splat (i1 true)"
    ir.do(f"call void {name}({type_} {value}, <{LANES} x ptr> {pointers}, i32 1, <{LANES} x i1> {mask})")


# ---------------------------------------------------------------- addresses


def convert_address(cx: Context, instruction: Instruction) -> None:
    """cvta: between a space's own addresses and generic ones, which are host addresses."""
    source = cx.read(instruction.operands[1], 64)
    space = space_of(instruction)
    back = instruction.has("to")
    if space == "shared":
        source = minus(cx, source, "%shared") if back else plus(cx, source, "%shared")
    elif space == "local":
        frame = cx.layout.frame_bytes
        steps = "<" + ", ".join(f"i64 {lane * frame}" for lane in range(LANES)) + ">"
        vector = cx.spread(minus(cx, source, "%local_base") if back else plus(cx, source, "%local_base"))
        source = Value(VARYING, cx.ir.get(f"{'sub' if back else 'add'} {integer(64, True)} {vector}, {steps}"), 64)
    cx.write(instruction.operands[0], source)


def minus(cx: Context, value: Value, amount: str) -> Value:
    """A 64-bit value less a scalar."""
    return plus(cx, value, cx.ir.get(f"sub i64 0, {amount}"))


def is_in_space(cx: Context, instruction: Instruction) -> None:
    """isspacep: whether a generic address lies in a space."""
    source, ir = cx.read(instruction.operands[1], 64), cx.ir
    space = space_of(instruction)
    x, y, z = cx.block
    threads = -(-x * y * z // LANES) * LANES
    shared = ir.get(f"add i32 %dynamic_shared, {cx.layout.static_shared}")
    windows = {
        "shared": ("%shared", ir.get(f"zext i32 {shared} to i64")),
        "local": ("%local", str(threads * cx.layout.frame_bytes)),
    }

    def inside(vector: bool, value: str, which: str) -> str:
        base, size = windows[which]
        type_ = integer(64, vector)
        start, end = (ir.splat(base, "i64"), ir.splat(size, "i64")) if vector else (base, size)
        return ir.get(f"icmp ult {type_} {ir.get(f'sub {type_} {value}, {start}')}, {end}")

    def build(vector: bool, value: str) -> str:
        if space in windows:
            return inside(vector, value, space)
        type_ = integer(1, vector)
        either = ir.get(f"or {type_} {inside(vector, value, 'shared')}, {inside(vector, value, 'local')}")
        return ir.get(f"xor {type_} {either}, {'splat (i1 true)' if vector else 'true'}")

    cx.write(instruction.operands[0], cx.compute([source], 1, build))


def nothing(cx: Context, instruction: Instruction) -> None:
    """Hints."""


def fence(cx: Context, instruction: Instruction) -> None:
    """membar, fence: host threads see one another's stores in order anyway; the checker hears of those beyond the block."""
    if not (is_block_wide(instruction) or instruction.has("proxy")):
        fenced(cx)


def is_block_wide(instruction: Instruction) -> bool:
    """Whether an ordering reaches no further than the thread block."""
    return instruction.has("cta")


def fenced(cx: Context) -> None:
    """Tells the checker that what these lanes did comes before what they do next, for other blocks too."""
    if cx.checked:
        cx.ir.call("void", "ev_check_fence", ("ptr", "%checker"), ("i32", "%warp_index"), ("i32", cx.mask_bits))


HANDLERS = {
    "ld": load,
    "ldu": load,
    "st": store,
    "cvta": convert_address,
    "isspacep": is_in_space,
    "fence": fence,
    "membar": fence,
    **dict.fromkeys(("prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "yield", "pmevent"), nothing),
}
