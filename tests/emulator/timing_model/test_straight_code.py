"""Pieces of straight-line code, and loops that only wait."""

from __future__ import annotations

import pytest

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, Node
from evoengine.emulator.ptx.syntax import Address, Guard, Instruction, Register
from evoengine.emulator.timing_model.straight_code import straight_code
from evoengine.emulator.timing_model.waiting import without_waiting

P = Register("%p")


def _node(*words: str, taken: int | None = None, after: int | None = None) -> Node:
    items = [_do(word) for word in words]
    if taken is not None:
        guard = Guard(P, False) if after is not None else None
        items.append(Instruction("bra", (), (), guard, 0, "bra"))
    return Node("", items, taken, after)


def _do(word: str) -> Instruction:
    op, *modifiers = word.split(".")
    return Instruction(op, tuple(modifiers), (Register("%a"), Address(P)), None, 0, word)


def _guarded_load(load: str = "ld.global.f32") -> ControlFlowGraph:
    """A loop whose only load is under a condition."""
    nodes = [
        _node("mov.b32", after=1),
        _node("setp.lt.s32", taken=3, after=2),
        _node(load, after=3),
        _node("st.shared.f32", taken=1, after=4),
        _node("ret"),
    ]
    return ControlFlowGraph(nodes, loop_headers=frozenset((1,)))


def test_a_loop_with_a_predicated_load_is_one_piece_that_repeats() -> None:
    pieces = {piece.first: piece for piece in straight_code(_guarded_load(), [1, 32, 32, 32, 1])}
    assert pieces[1].nodes == [1, 2, 3]
    assert pieces[1].repeats
    assert pieces[1].conditions[2] == {"%p"}
    assert not pieces[1].conditions[3]


def test_code_that_seldom_runs_or_waits_for_a_barrier_is_not_predicated() -> None:
    seldom = straight_code(_guarded_load(), [1, 32, 4, 32, 1])
    barrier = straight_code(_guarded_load("bar.sync"), [1, 32, 32, 32, 1])
    assert all(piece.nodes != [1, 2, 3] for piece in (*seldom, *barrier))


def test_a_condition_around_a_load_and_a_store_stays_a_branch() -> None:
    nodes = [
        _node("mov.b32", after=1),
        _node("setp.lt.s32", taken=3, after=2),
        _node("ld.shared.f32", "st.global.f32", after=3),
        _node("add.s32", taken=1, after=4),
        _node("ret"),
    ]
    cfg = ControlFlowGraph(nodes, loop_headers=frozenset((1,)))
    pieces = straight_code(cfg, [1, 32, 32, 32, 1])
    assert [piece.nodes for piece in pieces] == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize(
    ("work", "merged"),
    [
        (["ld.global.f32"] + 10 * ["add.f32"], True),
        (["ld.global.f32"] + 18 * ["add.f32"], False),
        (18 * ["add.f32"], True),
        (40 * ["add.f32"], False),
    ],
)
def test_a_long_condition_stays_a_branch_sooner_with_loads(work: list[str], merged: bool) -> None:
    nodes = [
        _node("setp.lt.s32", taken=2, after=1),
        _node(*work, after=2),
        _node("ret"),
    ]
    pieces = straight_code(ControlFlowGraph(nodes, loop_headers=frozenset()), [32, 32, 32])
    assert (pieces[0].nodes == [0, 1, 2]) == merged


def _spin(work: str) -> ControlFlowGraph:
    nodes = [
        _node("mov.b32", after=1),
        Node("", [Instruction("yield", (), (), None, 0, "yield")], None, 2),
        _node("atom.global.add.u32", work, taken=1, after=3),
        _node("ret"),
    ]
    return ControlFlowGraph(nodes, loop_headers=frozenset((1,)))


def test_a_loop_that_only_waits_counts_once_and_one_that_works_as_often_as_it_ran() -> None:
    assert without_waiting(_spin("nanosleep.u32"), [8, 900, 900, 8]) == [8, 8, 8, 8]
    assert without_waiting(_spin("st.global.u32"), [8, 900, 900, 8]) == [8, 900, 900, 8]


def test_a_branch_back_through_a_block_that_only_branches_ends_a_loop() -> None:
    nodes = [
        _node("mov.b32", after=1),
        _node("ld.global.f32", taken=3, after=2),
        _node(taken=1),
        _node("ret"),
    ]
    pieces = straight_code(ControlFlowGraph(nodes, loop_headers=frozenset((1,))), [1, 32, 31, 1])
    loop = next(piece for piece in pieces if piece.first == 1)
    assert loop.repeats
    assert loop.back == [2]
    assert all(2 not in piece.nodes for piece in pieces)
