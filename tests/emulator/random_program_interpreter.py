"""Interprets programs of `random_programs`: every thread on its own, with Python's integers (PTX
ISA 8.3, chapter 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.emulator.integer_semantics import rule_of
from tests.emulator.random_programs import (
    LOCAL_WORDS,
    SLOTS,
    VARIABLES,
    Assign,
    Call,
    Const,
    Exchange,
    Expr,
    If,
    IrreducibleFlow,
    Leave,
    Load,
    LoadVector,
    Loop,
    Op,
    Program,
    Return,
    ReturnValue,
    Shuffle,
    Special,
    Stmt,
    Store,
    Switch,
    Var,
    Vote,
)

ABSENT = 0xAB  # every byte of unwritten memory


class TooLongError(Exception):
    """The program takes too many steps for a test."""


@dataclass
class Thread:
    """One thread: its variables and memory."""

    env: dict[str, int]
    special: dict[str, int]
    local: bytearray
    shared: bytearray
    world: World
    number: int  # in the block
    all: int  # in the grid


@dataclass
class World:
    """Global memory, and the remaining number of steps."""

    program: Program
    input: bytes
    rows: list[int | None]
    columns: list[int | None]
    outs: dict[str, list[int | None]]
    steps: int


def initial(name: str, thread: int, first: int) -> int:
    """The initial value of a variable in a thread of the grid whose threadIdx.x is `first`."""
    if name[0] in "rq":
        return first
    bits = VARIABLES.get(name, 32)
    if name[0] == "u":
        return 7 * int(name[1:]) + 3
    return (thread * (2 * ord(name[1]) + 1) + ord(name[0])) & ((1 << bits) - 1)


def shared_word(place: int) -> int:
    """The initial value of a word of shared memory."""
    return place * 0x9E3779B1 & 0xFFFFFFFF


def evaluate(expr: Expr, t: Thread) -> int:
    """The value, as an unsigned integer."""
    if isinstance(expr, Var):
        return t.env[expr.name]
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Op):
        return rule_of(expr.text)(*[evaluate(item, t) for item in expr.args]) & (
            (1 << expr.bits) - 1
        )
    if isinstance(expr, Special):
        return t.special[expr.name]
    return load(expr, t)


def load(expr: Load, t: Thread) -> int:
    """A guarded load."""
    index = evaluate(expr.index, t)
    if index >= expr.limit:
        return 0
    memory = {"input": t.world.input, "shared": t.shared, "local": t.local}[expr.array]
    at, size = expr.offset + index * expr.stride, int(expr.type[1:]) // 8
    assert at + size <= len(memory)
    return int.from_bytes(memory[at : at + size], "little", signed=expr.type[0] == "s") & 0xFFFFFFFF


# ---------------------------------------------------------------- statements: they yield where
# threads need one another


def execute(body: tuple[Stmt, ...], t: Thread) -> Iterator[Any]:
    """Runs statements; returns "", "break", "continue", "return" or ("give", value)."""
    for statement in body:
        t.world.steps -= 1
        if t.world.steps < 0:
            raise TooLongError
        signal = yield from STATEMENTS[type(statement)](statement, t)
        if signal:
            return signal
    return ""


def _assign(s: Assign, t: Thread) -> Iterator[Any]:
    yield from ()
    t.env[s.name] = evaluate(s.value, t)


def _vector(s: LoadVector, t: Thread) -> Iterator[Any]:
    yield from ()
    index = evaluate(s.index, t)
    if index < s.limit:
        for place, name in enumerate(s.names):
            at = s.offset + 4 * (index * len(s.names) + place)
            t.env[name] = int.from_bytes(t.world.input[at : at + 4], "little")


def _if(s: If, t: Thread) -> Iterator[Any]:
    return (yield from execute(s.then if evaluate(s.condition, t) else s.otherwise, t))


def _loop(s: Loop, t: Thread) -> Iterator[Any]:
    limit = evaluate(s.limit, t)
    t.env[s.counter] = 0
    while t.env[s.counter] < (limit if s.rotated else evaluate(s.limit, t)):
        signal = yield from execute(s.body, t)
        if signal == "break":
            break
        if signal and signal != "continue":
            return signal
        t.env[s.counter] += 1
    return ""


def _leave(s: Leave, t: Thread) -> Iterator[Any]:
    yield from ()
    return s.what if evaluate(s.condition, t) else ""


def _return(s: Return, t: Thread) -> Iterator[Any]:
    yield from ()
    if not evaluate(s.condition, t):
        return ""
    if s.how == "jump":
        dump(t)
    return "return"


def _switch(s: Switch, t: Thread) -> Iterator[Any]:
    place = evaluate(s.selector, t)
    while place < len(s.cases):
        signal = yield from execute(s.cases[place], t)
        if signal:
            return signal
        if not s.falls[place]:
            break
        place += 1
    return ""


def _irreducible_flow(s: IrreducibleFlow, t: Thread) -> Iterator[Any]:
    place = 0
    t.env[s.counter] = s.fuel
    while place < len(s.blocks):
        t.env[s.counter] -= 1
        if not t.env[s.counter]:
            break
        inside, condition, yes, no = s.blocks[place]
        yield from execute(inside, t)
        place = yes if evaluate(condition, t) else no
    return ""


def _store(s: Store, t: Thread) -> Iterator[Any]:
    yield from ()
    slot, value = evaluate(s.slot, t), evaluate(s.value, t)
    if s.array == "local":
        t.local[4 * slot : 4 * slot + 4] = value.to_bytes(4, "little")
    elif s.array == "rows":
        t.world.rows[t.all * SLOTS + slot] = value
    else:
        t.world.columns[slot * t.world.program.threads * t.world.program.grid + t.all] = value


def _exchange(s: Exchange, t: Thread) -> Iterator[Any]:
    value = evaluate(s.value, t)
    writes = s.condition is None or evaluate(s.condition, t)
    yield ("barrier",)
    threads = t.world.program.threads
    if writes:
        place = {
            "same": s.slot * threads + t.number,
            "reversed": s.slot * threads + threads - 1 - t.number,
            "rotated": s.slot * threads + (t.number + s.slot) % threads,
            "strided": t.number * SLOTS + s.slot,
        }[s.place]
        t.shared[4 * place : 4 * place + 4] = value.to_bytes(4, "little")
    yield ("barrier",)


def _shuffle(s: Shuffle, t: Thread) -> Iterator[Any]:
    value, lane = evaluate(s.value, t), evaluate(s.lane, t)
    values = yield ("warp", value)
    own = t.number % 32
    first = own & -s.width
    last = first if s.mode == "up" else first + s.width - 1
    by = lane & 31
    if s.mode == "up":
        source = own - by
        inside = source >= last
    elif s.mode == "down":
        source = own + by
        inside = source <= last
    else:
        source = own ^ by if s.mode == "bfly" else first | (by & (s.width - 1))
        inside = source <= last
    t.env[s.name] = values[source if inside else own]
    t.env[s.inside] = int(inside)


def _vote(s: Vote, t: Thread) -> Iterator[Any]:
    value = evaluate(s.condition, t)
    values = yield ("barrier", value) if s.what.startswith("bar") else ("warp", value)
    found = {
        "ballot": lambda: sum(bit << lane for lane, bit in values.items()),
        "any": lambda: int(any(values.values())),
        "all": lambda: int(all(values.values())),
        "uni": lambda: int(len(set(values.values())) == 1),
        "popc": lambda: sum(values.values()),
        "and": lambda: int(all(values.values())),
        "or": lambda: int(any(values.values())),
    }
    t.env[s.name] = found[s.what.removeprefix("bar.")]()


def _call(s: Call, t: Thread) -> Iterator[Any]:
    own = [evaluate(item, t) for item in s.args]
    counters = {name: t.env[name] for name in t.world.program.counters}
    inner = Thread(
        {"x0": own[0], "x1": own[1], "y0": 1, **counters},
        t.special,
        t.local,
        t.shared,
        t.world,
        t.number,
        t.all,
    )
    signal = yield from execute(t.world.program.functions[s.function], inner)
    t.env[s.name] = signal[1]


def _return_value(s: ReturnValue, t: Thread) -> Iterator[Any]:
    yield from ()
    return ("give", evaluate(s.value, t)) if evaluate(s.condition, t) else ""


STATEMENTS: dict[type, Callable[..., Iterator[Any]]] = {
    Assign: _assign,
    LoadVector: _vector,
    If: _if,
    Loop: _loop,
    Leave: _leave,
    Return: _return,
    Switch: _switch,
    IrreducibleFlow: _irreducible_flow,
    Store: _store,
    Exchange: _exchange,
    Shuffle: _shuffle,
    Vote: _vote,
    Call: _call,
    ReturnValue: _return_value,
}


def dump(t: Thread) -> None:
    """The end of the kernel: stores every variable to global memory."""
    for name in VARIABLES:
        t.world.outs[name][t.all] = t.env[name]


def _whole(t: Thread) -> Iterator[Any]:
    signal = yield from execute(t.world.program.body, t)
    if not signal:
        dump(t)


def run(program: Program, data: bytes, steps: int = 60_000) -> World:
    """Global memory after the launch, None where nothing was written; raises TooLongError."""
    count = program.threads * program.grid
    world = World(
        program,
        data,
        [None] * count * SLOTS,
        [None] * count * SLOTS,
        {name: [None] * count for name in VARIABLES},
        steps,
    )
    for block in range(program.grid):
        _block(world, block)
    return world


def _block(world: World, block: int) -> None:
    program = world.program
    x, y, _ = program.block
    shared = bytearray().join(
        shared_word(place).to_bytes(4, "little") for place in range(program.threads * SLOTS)
    )
    threads = []
    for number in range(program.threads):
        all_ = block * program.threads + number
        special = {
            "tid.x": number % x,
            "tid.y": number // x % y,
            "tid.z": number // (x * y),
            "laneid": number % 32,
        }
        special |= {"ctaid.x": block, "nctaid.x": program.grid, "ntid.x": x}
        env = {name: initial(name, all_, special["tid.x"]) for name in VARIABLES} | dict.fromkeys(
            program.counters, 0
        )
        local = bytearray().join(
            (number + 3 * place).to_bytes(4, "little") for place in range(LOCAL_WORDS)
        )
        threads.append(Thread(env, special, local, shared, world, number, all_))
    _together([_whole(t) for t in threads])


def _together(running: list[Iterator[Any]]) -> None:
    """Runs the threads of a block from one synchronisation to the next."""
    waiting: dict[int, Any] = {}
    for number, thread in enumerate(running):
        _advance(waiting, number, thread, None)
    while waiting:
        warps = {number // 32 for number, item in waiting.items() if item[0] == "warp"}
        groups = [[number for number in waiting if number // 32 == warp] for warp in warps] or [
            list(waiting)
        ]
        for group in groups:
            assert len({waiting[number][0] for number in group}) == 1, (
                "threads meet in different places"
            )
            key = 32 if warps else 1 << 20
            values = {
                number % key: waiting[number][1] for number in group if len(waiting[number]) > 1
            }
            for number in group:
                del waiting[number]
            for number in group:
                _advance(waiting, number, running[number], values)


def _advance(waiting: dict[int, Any], number: int, thread: Iterator[Any], values: object) -> None:
    try:
        waiting[number] = thread.send(values)  # type: ignore[attr-defined]
    except StopIteration:
        return
