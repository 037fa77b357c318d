"""What lanes of a warp do together: shuffles, votes, match, redux."""

from __future__ import annotations

from evoengine.emulator.analyse.uniform import UNIFORM, VARYING
from evoengine.emulator.lower.context import Context, Value
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.ptx.program import Instruction, Pair

FULL_SEGMENT = {"up": 0, "down": 31, "bfly": 31, "idx": 31}  # the third operand of a shuffle over the whole warp


def sync(cx: Context, mask: str | None = None) -> None:
    """Tells the checker that these lanes waited for one another."""
    if cx.checked:
        bits = mask or cx.mask_bits
        cx.ir.call("void", "ev_check_warp_sync", ("ptr", "%checker"), ("i32", "%warp_index"), ("i32", bits))


def shuffle(cx: Context, instruction: Instruction) -> None:
    """shfl.sync.{up,down,bfly,idx}.b32 d|p, a, b, c, membermask."""
    mode = next(item for item in ("up", "down", "bfly", "idx") if instruction.has(item))
    value = cx.vector(instruction.operands[1], 32)
    by, segment = cx.read(instruction.operands[2], 32), cx.read(instruction.operands[3], 32)
    if mode == "idx" and by.shape is UNIFORM and _is_literal(segment) and segment.text == "31":
        _broadcast(cx, value, by)
        return
    if _is_literal(by) and _is_literal(segment) and int(segment.text) & 31 == FULL_SEGMENT[mode] and not int(segment.text) >> 8:
        moved, inside = _fixed(cx, mode, value, int(by.text) & 31)
    else:
        moved, inside = _general(cx, mode, value, cx.spread(by), cx.spread(segment))
    _moved(cx, Value(VARYING, moved, 32), Value(VARYING, inside, 1))


def _broadcast(cx: Context, value: str, by: Value) -> None:
    """One lane's value for all."""
    lane = cx.ir.get(f"and i32 {by.text}, 31")
    one = cx.ir.get(f"extractelement {integer(32, True)} {value}, i32 {lane}")
    _moved(cx, Value(UNIFORM, one, 32), Value(UNIFORM, "true", 1))


def _moved(cx: Context, value: Value, inside: Value) -> None:
    target = cx.instruction.operands[0]
    cx.write(target.first if isinstance(target, Pair) else target, value)
    if isinstance(target, Pair):
        cx.write(target.second, inside)
    sync(cx)


def _is_literal(value: Value) -> bool:
    return value.shape is UNIFORM and value.text.lstrip("-").isdigit()


def _fixed(cx: Context, mode: str, value: str, by: int) -> tuple[str, str]:
    """Over the whole warp by a literal: one shufflevector."""
    rules = {"up": lambda lane: lane - by, "down": lambda lane: lane + by, "bfly": lambda lane: lane ^ by, "idx": lambda _: by}
    sources = [rules[mode](lane) for lane in range(LANES)]
    inside = [0 <= source < LANES for source in sources]
    picks = ", ".join(f"i32 {source if ok else lane}" for lane, (source, ok) in enumerate(zip(sources, inside, strict=True)))
    kind = integer(32, True)
    moved = cx.ir.get(f"shufflevector {kind} {value}, {kind} poison, <{LANES} x i32> <{picks}>")
    return moved, "<" + ", ".join(f"i1 {'true' if ok else 'false'}" for ok in inside) + ">"


def _general(cx: Context, mode: str, value: str, by: str, segment: str) -> tuple[str, str]:
    """PTX ISA's pseudo code, in C."""
    inputs = [cx.lanes(slot, 32, text) for slot, text in enumerate((value, by, segment))]
    out, inside = cx.lanes(3, 32), cx.lanes(4, 32)
    pointers = [("ptr", item) for item in inputs]
    cx.ir.call("void", f"ev_shfl_{mode}_b32", *pointers, ("i32", cx.mask_bits), ("ptr", out), ("ptr", inside))
    loaded = cx.ir.get(f"load i32, ptr {inside}")
    return cx.from_lanes(out, 32), cx.ir.get(f"bitcast i32 {loaded} to <{LANES} x i1>")


def _predicate_bits(cx: Context, text: str) -> str:
    return cx.ir.get(f"bitcast <{LANES} x i1> {text} to i32")


def vote(cx: Context, instruction: Instruction) -> None:
    """vote.sync.{all,any,uni,ballot} d, p, membermask: over the lanes that run."""
    ir = cx.ir
    bits = _predicate_bits(cx, cx.spread(cx.read(instruction.operands[1], 1)))
    here = ir.get(f"and i32 {bits}, {cx.mask_bits}")
    target = instruction.operands[0]
    members = cx.read(instruction.operands[-1], 32)
    if members.shape is not UNIFORM:
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


def _vote_by_group(cx: Context, instruction: Instruction, here: str, members: Value) -> None:
    """Every lane hears of the lanes of its own member mask."""
    ir, kind, flag = cx.ir, integer(32, True), integer(1, True)
    group = ir.get(f"and {kind} {cx.spread(members)}, {ir.splat(cx.mask_bits, 'i32')}")
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


def active_mask(cx: Context, instruction: Instruction) -> None:
    """activemask: the lanes that run."""
    cx.write(instruction.operands[0], Value(UNIFORM, cx.ir.get(f"or i32 {cx.mask_bits}, 0"), 32))


def warp_barrier(cx: Context, instruction: Instruction) -> None:
    """bar.warp.sync: lanes run in step already. bar.arrive is not a place to wait."""
    if instruction.has("warp"):
        sync(cx)
        return
    raise cx.unsupported()


HANDLERS = {
    "shfl": shuffle,
    "vote": vote,
    "activemask": active_mask,
    "bar": warp_barrier,
    "barrier": warp_barrier,
}
