"""Warp-level instructions: shuffles, votes, match, redux, elect."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.emulator.analyse.uniformity import UNIFORM, VARYING
from evoengine.emulator.lower.barrier import lanes_by_number
from evoengine.emulator.lower.context import IOTA, LoweringContext, Value
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Pair
from evoengine.emulator.run.abi import WarpRecord

# the third operand of a shuffle over the whole warp
FULL_SEGMENT = {
    "up": 0,
    "down": 31,
    "bfly": 31,
    "idx": 31,
}


def sync(cx: LoweringContext, mask: str | None = None) -> None:
    """Reports to the checker that these lanes synchronised."""
    if cx.checked:
        bits = mask or cx.mask_bits
        cx.ir.call(
            "void", "ev_check_warp_sync", ("ptr", "%checker"), ("i32", "%warp_index"), ("i32", bits)
        )


def shuffle(cx: LoweringContext, instruction: Instruction) -> None:
    """shfl.sync.{up,down,bfly,idx}.b32 d|p, a, b, c, membermask."""
    mode = next(item for item in ("up", "down", "bfly", "idx") if instruction.has(item))
    value = cx.vector(instruction.operands[1], 32)
    by, segment = cx.read(instruction.operands[2], 32), cx.read(instruction.operands[3], 32)
    if mode == "idx" and by.variance is UNIFORM and _is_literal(segment) and segment.text == "31":
        _broadcast(cx, value, by)
        return
    if (
        _is_literal(by)
        and _is_literal(segment)
        and int(segment.text) & 31 == FULL_SEGMENT[mode]
        and not int(segment.text) >> 8
    ):
        moved, inside = _fixed(cx, mode, value, int(by.text) & 31)
    else:
        moved, inside = _general(cx, mode, value, cx.as_vector(by), cx.as_vector(segment))
    _moved(cx, Value(VARYING, moved, 32), Value(VARYING, inside, 1))


def _broadcast(cx: LoweringContext, value: str, by: Value) -> None:
    """shfl.idx with a uniform lane: one lane's value in all lanes."""
    lane = cx.ir.get(f"and i32 {by.text}, 31")
    one = cx.ir.get(f"extractelement {integer(32, True)} {value}, i32 {lane}")
    _moved(cx, Value(UNIFORM, one, 32), Value(UNIFORM, "true", 1))


def _moved(cx: LoweringContext, value: Value, inside: Value) -> None:
    target = cx.instruction.operands[0]
    cx.write(target.first if isinstance(target, Pair) else target, value)
    if isinstance(target, Pair):
        cx.write(target.second, inside)
    sync(cx)


def _is_literal(value: Value) -> bool:
    return value.variance is UNIFORM and value.text.lstrip("-").isdigit()


def _fixed(cx: LoweringContext, mode: str, value: str, by: int) -> tuple[str, str]:
    """A shuffle over the whole warp by a literal: one shufflevector."""
    rules: dict[str, Callable[[int], int]] = {
        "up": lambda lane: lane - by,
        "down": lambda lane: lane + by,
        "bfly": lambda lane: lane ^ by,
        "idx": lambda _: by,
    }
    sources = [rules[mode](lane) for lane in range(LANES)]
    inside = [0 <= source < LANES for source in sources]
    picks = ", ".join(
        f"i32 {source if ok else lane}"
        for lane, (source, ok) in enumerate(zip(sources, inside, strict=True))
    )
    kind = integer(32, True)
    moved = cx.ir.get(f"shufflevector {kind} {value}, {kind} poison, <{LANES} x i32> <{picks}>")
    return moved, "<" + ", ".join(f"i1 {'true' if ok else 'false'}" for ok in inside) + ">"


def _general(cx: LoweringContext, mode: str, value: str, by: str, segment: str) -> tuple[str, str]:
    """Any other shuffle: the PTX ISA's pseudocode, in C."""
    inputs = [cx.lanes(slot, 32, text) for slot, text in enumerate((value, by, segment))]
    out, inside = cx.lanes(3, 32), cx.lanes(4, 32)
    pointers = [("ptr", item) for item in inputs]
    cx.ir.call(
        "void",
        f"ev_shfl_{mode}_b32",
        *pointers,
        ("i32", cx.mask_bits),
        ("ptr", out),
        ("ptr", inside),
    )
    loaded = cx.ir.get(f"load i32, ptr {inside}")
    return cx.from_lanes(out, 32), cx.ir.get(f"bitcast i32 {loaded} to <{LANES} x i1>")


def _predicate_bits(cx: LoweringContext, text: str) -> str:
    return cx.ir.get(f"bitcast <{LANES} x i1> {text} to i32")


def vote(cx: LoweringContext, instruction: Instruction) -> None:
    """vote.sync.{all,any,uni,ballot} d, p, membermask: over the active lanes."""
    ir = cx.ir
    bits = _predicate_bits(cx, cx.as_vector(cx.read(instruction.operands[1], 1)))
    here = ir.get(f"and i32 {bits}, {cx.mask_bits}")
    target = instruction.operands[0]
    members = cx.read(instruction.operands[-1], 32)
    if members.variance is not UNIFORM:
        _vote_by_group(cx, instruction, here, members)
        return
    if instruction.has("ballot"):
        cx.write(target, Value(UNIFORM, here, 32))
    else:
        every = ir.get(f"icmp eq i32 {here}, {cx.mask_bits}")
        some = ir.get(f"icmp ne i32 {here}, 0")
        if instruction.has("uni"):
            text = ir.get(f"or i1 {every}, {ir.get(f'xor i1 {some}, true')}")
        else:
            text = every if instruction.has("all") else some
        cx.write(target, Value(UNIFORM, text, 1))
    sync(cx)


def _vote_by_group(
    cx: LoweringContext, instruction: Instruction, here: str, members: Value
) -> None:
    """A vote in which every lane votes with the lanes of its own member mask."""
    ir, kind, flag = cx.ir, integer(32, True), integer(1, True)
    group = ir.get(f"and {kind} {cx.as_vector(members)}, {ir.splat(cx.mask_bits, 'i32')}")
    own = ir.get(f"and {kind} {group}, {ir.splat(here, 'i32')}")
    if instruction.has("ballot"):
        cx.write(instruction.operands[0], Value(VARYING, own, 32))
    else:
        every = ir.get(f"icmp eq {kind} {own}, {group}")
        some = ir.get(f"icmp ne {kind} {own}, zeroinitializer")
        text = every if instruction.has("all") else some
        if instruction.has("uni"):
            text = ir.get(f"or {flag} {every}, {ir.get(f'xor {flag} {some}, splat (i1 true)')}")
        cx.write(instruction.operands[0], Value(VARYING, text, 1))
    sync(cx)


def active_mask(cx: LoweringContext, instruction: Instruction) -> None:
    """activemask: the active lanes."""
    cx.write(instruction.operands[0], Value(UNIFORM, cx.ir.get(f"or i32 {cx.mask_bits}, 0"), 32))


def warp_barrier(cx: LoweringContext, instruction: Instruction) -> None:
    """bar.warp.sync: lanes already run in lockstep; bar.arrive: the warp does not wait."""
    if instruction.has("warp"):
        sync(cx)
    elif instruction.has("arrive"):
        _arrive(cx, instruction)
    else:
        raise cx.unsupported()


def _arrive(cx: LoweringContext, instruction: Instruction) -> None:
    """bar.arrive number, threads: recorded in the warp, for the driver to count."""
    number, count = instruction.operands
    threads = cx.scalar(count, 32)
    if threads is None:
        raise cx.unsupported("a barrier whose count differs between lanes")
    for barrier, lanes in lanes_by_number(cx, number, cx.mask_bits):
        _pass(cx, barrier, threads, lanes)


def _pass(cx: LoweringContext, barrier: str, threads: str, lanes: str) -> None:
    """Records that `lanes`, if there are any, pass a barrier for so many threads."""
    ir = cx.ir
    with cx.only_if(ir.get(f"icmp ne i32 {lanes}, 0")):
        for field, value in ((WarpRecord.passed, lanes), (WarpRecord.expected, threads)):
            fields = ir.get(f"getelementptr i8, ptr %warp, i64 {field.offset}")
            item = ir.get(f"getelementptr i32, ptr {fields}, i32 {barrier}")
            ir.do(f"store i32 {value}, ptr {item}")
        if cx.checked:
            ir.call(
                "void",
                "ev_check_arrive",
                ("ptr", "%checker"),
                ("i32", barrier),
                ("i32", "%warp_index"),
            )


def match(cx: LoweringContext, instruction: Instruction) -> None:
    """match.{any,all}.sync.{b32,b64} d[|p], a, membermask: the lanes of the own member mask that
    have the same value.
    """
    target, bits = instruction.operands[0], TYPE_BITS[instruction.type]
    value, members = cx.vector(instruction.operands[1], bits), cx.read(instruction.operands[2], 32)
    if instruction.has("any"):
        pointer, out = cx.lanes(0, bits, value), cx.lanes(1, 32, "zeroinitializer")
        cx.ir.call(
            "void", f"ev_match_any_b{bits}", ("ptr", pointer), ("i32", cx.mask_bits), ("ptr", out)
        )
        found = cx.ir.get(
            f"and {integer(32, True)} {cx.from_lanes(out, 32)}, {cx.as_vector(members)}"
        )
    else:
        found = cx.as_vector(_by_group(cx, members, f"ev_match_all_b{bits}", bits, value))
    cx.write(target.first if isinstance(target, Pair) else target, Value(VARYING, found, 32))
    if isinstance(target, Pair):
        some = cx.ir.get(f"icmp ne {integer(32, True)} {found}, zeroinitializer")
        cx.write(target.second, Value(VARYING, some, 1))
    sync(cx)


def reduce(cx: LoweringContext, instruction: Instruction) -> None:
    """redux.sync.{add,min,max,and,or,xor}.{u32,s32,b32,f32} d, a, membermask."""
    operation, type_ = instruction.modifiers[1], instruction.type
    if operation not in _REDUCTIONS.get(type_, ()) or len(instruction.modifiers) != 3:
        raise cx.unsupported()
    name = f"ev_redux_{operation}_{'u32' if operation == 'add' else type_}"
    value, members = cx.vector(instruction.operands[1], 32), cx.read(instruction.operands[2], 32)
    cx.write(
        instruction.operands[0],
        _by_group(cx, members, name, 32, value, "float" if type_ == "f32" else "i32"),
    )
    sync(cx)


_REDUCTIONS = {
    **dict.fromkeys(("u32", "s32"), ("add", "min", "max")),
    "b32": ("and", "or", "xor"),
    "f32": ("min", "max"),
}


def _by_group(
    cx: LoweringContext, members: Value, name: str, bits: int, value: str, result: str = "i32"
) -> Value:
    """Calls C function `name`(lanes of `value`, mask) for every group of active lanes that share a
    member mask.
    """
    pointer = cx.lanes(0, bits, value)

    def called(mask: str) -> str:
        return cx.ir.bitcast(
            cx.ir.call(result, name, ("ptr", pointer), ("i32", mask)), result, "i32"
        )

    if members.variance is UNIFORM:
        return Value(UNIFORM, called(cx.mask_bits), 32)
    return _group_loop(cx, cx.as_vector(members), called)


def _group_loop(cx: LoweringContext, members: str, called: Callable[[str], str]) -> Value:
    """A loop over the groups of lanes with the same member mask; each result is written to its
    lanes.
    """
    ir, kind = cx.ir, integer(32, True)
    left, out = cx.rows(512, 32, ()), cx.lanes(1, 32, "zeroinitializer")
    ir.do(f"store i32 {cx.mask_bits}, ptr {left}")
    head, body, done = ir.label(), ir.label(), ir.label()
    ir.do(f"br label %{head}")
    ir.place(head)
    rest = ir.get(f"load i32, ptr {left}")
    ir.do(f"br i1 {ir.get(f'icmp ne i32 {rest}, 0')}, label %{body}, label %{done}")
    ir.place(body)
    first = ir.intrinsic("cttz", "i32", rest, also="i1 true")
    own = ir.get(
        f"or i32 {ir.get(f'extractelement {kind} {members}, i32 {first}')},"
        f" {ir.get(f'shl i32 1, {first}')}"
    )
    group = ir.get(f"and i32 {own}, {rest}")
    one = ir.splat(called(group), "i32")
    lanes = ir.get(f"bitcast i32 {group} to <{LANES} x i1>")
    other = cx.from_lanes(out, 32)
    merged = ir.get(f"select <{LANES} x i1> {lanes}, {kind} {one}, {kind} {other}")
    ir.do(f"store {kind} {merged}, ptr {out}, align 64")
    ir.do(f"store i32 {ir.get(f'xor i32 {rest}, {group}')}, ptr {left}")
    ir.do(f"br label %{head}")
    ir.place(done)
    return Value(VARYING, cx.from_lanes(out, 32), 32)


def elect(cx: LoweringContext, instruction: Instruction) -> None:
    """elect.sync d|p, membermask: the lowest active lane of the member mask is the leader."""
    ir, kind = cx.ir, integer(32, True)
    target, members = instruction.operands[0], cx.vector(instruction.operands[1], 32)
    if not isinstance(target, Pair):
        raise cx.unsupported("a result that is not a pair")
    here = ir.get(f"and {kind} {members}, {ir.splat(cx.mask_bits, 'i32')}")
    leader = ir.intrinsic("cttz", kind, here, also="i1 false")
    cx.write(target.first, Value(VARYING, leader, 32))
    cx.write(target.second, Value(VARYING, ir.get(f"icmp eq {kind} {leader}, {IOTA}"), 1))
    sync(cx)


HANDLERS = {
    "shfl": shuffle,
    "match": match,
    "redux": reduce,
    "elect": elect,
    "vote": vote,
    "activemask": active_mask,
    "bar": warp_barrier,
    "barrier": warp_barrier,
}
