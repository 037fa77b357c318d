"""Edges, order, post-dominators, liveness, yields."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from evoengine.emulator.analyse.cfg_builder import build_cfg
from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.dominance import post_dominators
from evoengine.emulator.analyse.spin_loops import natural_loop
from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.ptx.syntax import Block, Instruction, Operand, Register, Symbol
from tests.emulator.analyse.small_functions import cfg, function, number

DIAMOND = (
    "@%p1 bra B; A: add.u32 %r2, %r1, 1; bra J; B: add.u32 %r2, %r1, 2; J: st.global.u32 [%d1],"
    " %r2; ret;"
)
SPIN = "L: {load} %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;"


def test_a_block_comes_before_what_is_only_reached_through_it() -> None:
    found = cfg(DIAMOND)
    assert found.nodes[0].successors == (number(found, "B"), number(found, "A"))
    assert number(found, "J") == 3 and found.exit == 4


def test_the_paths_of_a_diamond_meet_at_its_end() -> None:
    found = cfg(DIAMOND)
    join = number(found, "J")
    assert found.post_dominator == [join, join, join, found.exit]
    assert found.influence(0) == {1, 2}


def test_unreachable_code_is_left_out() -> None:
    found = cfg("bra E; X: add.u32 %r1, %r1, 1; bra X; E: ret;")
    assert len(found.nodes) == 2 and not found.loop_headers


def test_lanes_that_do_not_take_a_branch_at_the_end_exit() -> None:
    found = cfg("L: setp.eq.u32 %p1, %r1, 0; @%p1 bra L;")
    again, end = found.nodes[number(found, "L")].successors
    assert again == number(found, "L") and found.nodes[end].successors == ()


def test_every_loop_has_a_header() -> None:
    for body in ("L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L; ret;", "L: bra L;"):
        assert cfg(body).loop_headers == {number(cfg(body), "L")}
    # Two entries: whatever the order, one of the two blocks is a header.
    assert cfg(
        "@%p1 bra B; A: add.u32 %r1, %r1, 1; B: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2"
        " bra A; ret;"
    ).loop_headers


LOOPS = {
    # what comes after it stands before its body
    "left at its head": (
        "H: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra B; E: ret;"
        " B: add.u32 %r2, %r2, 1; bra H;"
    ),
    # of two ways through it, the one that leaves it comes first
    "left in the middle": (
        "H: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra B; A: setp.lt.u32 %p2, %r1, 5;"
        " @%p2 bra H; E: ret; B: add.u32 %r2, %r2, 1; C: add.u32 %r2, %r2, 2; bra H;"
    ),
    # the inner loop leaves for the head of the outer one, and for its end
    "one in another": (
        "H: add.u32 %r1, %r1, 1; I: setp.lt.u32 %p1, %r1, 9; @%p1 bra B; setp.lt.u32 %p2, %r2, 9;"
        " @%p2 bra H; E: ret; B: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 5; @%p3 bra I; bra H;"
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_comes_after_a_loop_is_behind_all_of_it(name: str) -> None:
    found = cfg(LOOPS[name])
    assert found.loop_headers
    for header in found.loop_headers:
        body = natural_loop(found, header)
        out = {item for number in body for item in found.nodes[number].successors} - body
        assert all(item > max(body) for item in out - found.loop_headers)


def test_a_barrier_ends_its_block_and_a_guarded_one_is_branched_around() -> None:
    found = cfg("bar.sync 0; add.u32 %r1, %r1, 1; ret;")
    assert [len(node.instructions) for node in found.nodes] == [1, 2] and found.nodes[0].suspension
    found = cfg("@%p1 bar.sync 0; ret;")
    assert found.nodes[0].last is not None and found.nodes[0].last.op == "bra"
    assert found.nodes[0].last.guard is not None and found.nodes[0].last.guard.negated


def _yields(found: ControlFlowGraph) -> int:
    return [item.op for node in found.nodes for item in node.instructions].count("yield")


@pytest.mark.parametrize(
    "load", ["ld.volatile.global.u32", "ld.acquire.gpu.global.u32", "ld.relaxed.sys.global.u32"]
)
def test_a_loop_whose_exit_depends_on_other_threads_yields(load: str) -> None:
    assert _yields(cfg(SPIN.format(load=load))) == 1


def test_a_loop_that_waits_for_an_atomic_operation_yields() -> None:
    body = "L: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret;"
    assert _yields(cfg(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        SPIN.format(load="ld.global.u32"),
        (
            "L: ld.volatile.global.u32 %r1, [%d1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9;"
            " @%p1 bra L; ret;"
        ),
        (
            "L: bar.sync 0; ld.volatile.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"
            " ret;"
        ),
    ],
    ids=["plain load", "counted loop", "has a barrier"],
)
def test_other_loops_do_not_yield(body: str) -> None:
    assert _yields(cfg(body)) == 0


def test_registers_read_later_are_live_and_a_guarded_write_does_not_kill() -> None:
    found = cfg(
        "mov.u32 %r1, 1; mov.u32 %r2, 2; bar.sync 0; @%p1 mov.u32 %r2, 3; st.global.u32 [%d1], %r2;"
        " ret;"
    )
    assert found.nodes[1].live_in == {"%r2", "%p1", "%d1"}


@pytest.mark.parametrize("operands", [(), (Register("%r1"),), (Symbol("Nowhere"),)])
def test_a_branch_without_a_target_is_refused(operands: tuple[Operand, ...]) -> None:
    branch = Instruction("bra", (), operands, None, 0, "bra somewhere")
    with pytest.raises(PtxError, match="`bra somewhere` has no label"):
        build_cfg(replace(function("ret;"), blocks=[Block("only", [branch])]))


def _by_definition(after: list[tuple[int, ...]]) -> list[int]:
    """Immediate post-dominators by definition: blocks without which the exit is unreachable."""
    exit_ = len(after)

    def reaches_exit(start: int, without: int) -> bool:
        seen, stack = set[int](), [start]
        while stack:
            item = stack.pop()
            if item == exit_:
                return True
            if item != without and item not in seen:
                seen.add(item)
                stack += after[item] or (exit_,)
        return False

    found = []
    for block in range(exit_):
        strict = [
            other for other in range(exit_) if other != block and not reaches_exit(block, other)
        ]
        # The nearest one is post-dominated by all others.
        nearest = [
            one
            for one in strict
            if all(one == other or not reaches_exit(one, other) for other in strict)
        ]
        found.append(nearest[0] if nearest else exit_)
    return found


def test_post_dominators_match_their_definition() -> None:
    chance = random.Random(0)  # noqa: S311 - the same graphs every time are wanted
    tried = 0
    for _ in range(400):
        count = chance.randrange(2, 9)
        after = [tuple(chance.sample(range(count), chance.randrange(3))) for _ in range(count)]
        reaching = {block for block, items in enumerate(after) if not items}
        for _, (block, items) in itertools.product(range(count), enumerate(after)):
            if set(items) & reaching:
                reaching.add(block)
        if len(reaching) == count:  # the definition has nothing to say on blocks without an end
            tried += 1
            assert post_dominators(after) == _by_definition(after), after
    assert tried > 100


def test_an_endless_loop_has_a_post_dominator_too() -> None:
    assert post_dominators([(1,), (2,), (1,)]) == [1, 2, 3]
