"""Random programs on the emulator, fast and checked, against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from evoengine.emulator.device import Checks, Emulator, LaunchReport
from tests.emulator import random_program_interpreter
from tests.emulator.block_layout import ending_in_a_loop, in_another_order
from tests.emulator.integer_semantics import rule_of
from tests.emulator.random_program_generator import generate
from tests.emulator.random_program_interpreter import ABSENT
from tests.emulator.random_program_ptx import ARRAYS, KERNEL, ptx
from tests.emulator.random_programs import (
    INPUT_WORDS,
    SLOTS,
    VARIABLES,
    Assign,
    Const,
    Expr,
    Load,
    Op,
    Program,
    Special,
)

SEEDS = range(40)  # half a second each
DATA = random.Random(5).randbytes(INPUT_WORDS * 4)  # noqa: S311 - the same bytes every time are wanted


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    device = Emulator(target="l4", threads=1)
    yield device
    device.close()


def stored_bytes(name: str) -> int:
    """Bytes of one element of an array."""
    return max(VARIABLES.get(name, 32) // 8, 1) if VARIABLES.get(name) != 1 else 4


def initial(program: Program) -> dict[str, bytes]:
    """The arrays before the launch."""
    threads = program.threads * program.grid
    words = {
        "rows": threads * SLOTS,
        "columns": threads * SLOTS,
        **dict.fromkeys(VARIABLES, threads),
    }
    return {
        "input": DATA,
        **{name: bytes([ABSENT]) * (stored_bytes(name) * count) for name, count in words.items()},
    }


def expected(program: Program) -> dict[str, bytes]:
    """The expected arrays after the launch."""
    world = random_program_interpreter.run(program, DATA)
    values = {"rows": world.rows, "columns": world.columns, **world.outs}
    found = {"input": DATA}
    for name, items in values.items():
        size = stored_bytes(name)
        absent = bytes([ABSENT]) * size
        found[name] = b"".join(
            absent if item is None else item.to_bytes(size, "little") for item in items
        )
    return found


def launched(
    emulator: Emulator, program: Program, text: str, checks: Checks | None
) -> tuple[dict[str, bytes], LaunchReport]:
    """The arrays after a launch of a program, written as PTX `text`, on the emulator."""
    code = emulator.load(text)
    before = initial(program)
    places = {name: emulator.memory.allocate(len(data), name=name) for name, data in before.items()}
    try:
        for name, data in before.items():
            emulator.memory.view(places[name], len(data))[:] = np.frombuffer(data, dtype=np.uint8)
        args = [places[name].to_bytes(8, "little") for name in ARRAYS]
        report = code.launch(
            KERNEL, grid=(program.grid, 1, 1), block=program.block, args=args, checks=checks
        )
        broken = [name for name, place in places.items() if emulator.memory.red_zones_broken(place)]
        assert not broken, f"written beside {broken}"
        return {
            name: emulator.memory.view(places[name], len(data)).tobytes()
            for name, data in before.items()
        }, report
    finally:
        for place in places.values():
            emulator.memory.free(place)
        code.close()


def differing(found: dict[str, bytes], wanted: dict[str, bytes]) -> list[str]:
    """The first element that differs in each array."""
    lines = []
    for name, data in wanted.items():
        size = stored_bytes(name)
        pairs = [
            (at, found[name][at : at + size], data[at : at + size])
            for at in range(0, len(data), size)
        ]
        wrong = [(at // size, a[::-1].hex(), b[::-1].hex()) for at, a, b in pairs if a != b]
        if wrong:
            lines.append(
                f"{name}[{wrong[0][0]}] is {wrong[0][1]}, not {wrong[0][2]} ({len(wrong)} of"
                f" {len(pairs)})"
            )
    return lines


def agree(emulator: Emulator, program: Program, text: str | None = None) -> None:
    """Compares the emulator in both modes with the interpreter; `text` is the program as PTX."""
    wanted, text = expected(program), text or ptx(program)
    for checks in (None, Checks()):
        found, report = launched(emulator, program, text, checks)
        assert not differing(found, wanted), text
        assert not report.findings, [report.describe(item) for item in report.findings]


@pytest.mark.sampled("seed", one_in=16)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_gives_the_results_of_the_interpreter(
    emulator: Emulator, seed: int
) -> None:
    agree(emulator, generate(seed))


@pytest.mark.sampled("seed", one_in=16)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_blocks_and_a_loop_at_the_end_change_no_result(
    emulator: Emulator, seed: int
) -> None:
    program = generate(seed)
    agree(emulator, program, in_another_order(ending_in_a_loop(ptx(program)), seed))


THREAD = Special("tid.x")
BEFORE = Op("sub.u32", 32, (THREAD, Const(32, 3)))  # begins below zero
LATE = Op("add.u32", 32, (THREAD, Const(32, 0x7FFFFFF0)))  # becomes negative on the way
# wraps many times
STEEP = Op("shl.b32", 32, (Op("shl.b32", 32, (THREAD, Const(32, 16))), Const(32, 12)))
FOUR = Const(32, 4)
EDGES: dict[str, Expr] = {
    "unsigned that wraps below zero": Op("cvt.u64.u32", 64, (BEFORE,)),
    "unsigned that wraps, times four": Op("mul.wide.u32", 64, (BEFORE, FOUR)),
    "unsigned that wraps, times four and more": Op(
        "mad.wide.u32", 64, (BEFORE, FOUR, Const(64, 5))
    ),
    "signed that wraps": Op("cvt.s64.s32", 64, (LATE,)),
    "steep": Op("cvt.u64.u32", 64, (STEEP,)),
    "beyond the width": Op("cvt.u64.u32", 64, (Op("shr.u32", 32, (THREAD, Const(32, 33))),)),
    "literal that is negative": Op("cvt.s64.s16", 64, (Const(16, 65524),)),
    "guarded index below zero": Op(
        "cvt.u64.u32", 64, (Load("input", "u32", BEFORE, 4, 0, 512, "wide.u32"),)
    ),
    "guarded 32-bit address below zero": Op(
        "cvt.u64.u32", 64, (Load("shared", "u32", BEFORE, 4, 0, 16, "low"),)
    ),
    "guarded 32-bit address and offset": Op(
        "cvt.u64.u32", 64, (Load("shared", "u32", BEFORE, 4, 12, 16, "low"),)
    ),
    "steep index": Op("cvt.u64.u32", 64, (Load("input", "u32", STEEP, 4, 0, 512, "cvt.u64"),)),
}


@pytest.mark.parametrize("name", EDGES)
def test_an_affine_value_keeps_its_values_where_it_wraps(emulator: Emulator, name: str) -> None:
    # not a variable that is also written elsewhere
    value = Op("xor.b64", 64, (EDGES[name], Const(64, 0)))
    agree(emulator, Program(0, (Assign("w0", value),), (), (64, 1, 1), 2, ()))


@cache
def programs() -> list[Program]:
    return [generate(seed) for seed in SEEDS]


def test_the_programs_hold_every_kind_of_statement_and_most_blocks() -> None:
    text = " ".join(repr(program) for program in programs())
    kinds = (
        "Assign",
        "LoadVector",
        "If",
        "Loop",
        "Leave",
        "Return",
        "Switch",
        "IrreducibleFlow",
        "Store",
        "Exchange",
        "Shuffle",
        "Vote",
        "Call",
        "ReturnValue",
    )
    assert [kind for kind in kinds if f"{kind}(" not in text] == []
    assert len({program.block for program in programs()}) > 7


def test_most_threads_of_the_programs_come_to_the_end() -> None:
    ends = [
        item is not None
        for program in programs()
        for item in random_program_interpreter.run(program, DATA).outs["a0"]
    ]
    assert sum(ends) > len(ends) / 2


@pytest.mark.parametrize(
    ("text", "operands", "result"),
    [
        ("shr.s32", (0x80000000, 40), 0xFFFFFFFF),
        ("shl.b32", (1, 32), 0),
        ("mul.hi.s32", (0xFFFFFFFF, 2), 0xFFFFFFFF),
        ("mul.wide.u32", (0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFE00000001),
        ("div.s32", (-7 & 0xFFFFFFFF, 2), -3 & 0xFFFFFFFF),
        ("rem.s32", (-7 & 0xFFFFFFFF, 2), -1 & 0xFFFFFFFF),
        ("bfe.s32", (0x000000F0, 4, 4), 0xFFFFFFFF),
        ("prmt.b32", (0x33221180, 0x77665544, 0x8654), 0xFF665544),
        ("shf.l.wrap.b32", (0x80000000, 1, 33), 3),
        ("lop3.b32", (0xF0, 0xCC, 0xAA, 0xE8), 0xE8),
    ],
)
def test_the_semantics_match_results_worked_out_by_hand(
    text: str, operands: tuple[int, ...], result: int
) -> None:
    bits = 64 if "wide" in text else 32
    assert rule_of(text)(*operands) & ((1 << bits) - 1) == result
