"""The cost of a basic block, from its instructions."""

from __future__ import annotations

import pytest

from evoengine.emulator.ptx.syntax import (
    Address,
    Float,
    Guard,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from evoengine.emulator.timing_model.dependency_chains import Step
from evoengine.emulator.timing_model.instruction_mix import InstructionMix, instruction_mix
from evoengine.emulator.timing_model.site_memory import SiteMemory


def _r(name: str) -> Register:
    return Register(f"%{name}")


def _do(text: str, *operands: Operand, guard: str = "") -> Instruction:
    op, *modifiers = text.split(".")
    return Instruction(
        op, tuple(modifiers), operands, Guard(_r(guard), False) if guard else None, 0, text
    )


def _mix(*instructions: Instruction) -> InstructionMix:
    return instruction_mix(instructions)


ONE = Float(0x3F800000, 32)


def test_instructions_are_counted_by_pipe() -> None:
    found = _mix(
        _do("ld.shared.f32", _r("a"), Address(_r("p"))),
        _do("fma.rn.f32", _r("b"), _r("a"), ONE, ONE),
        _do("fma.rn.f32", _r("c"), _r("a"), ONE, ONE),
        _do("mov.b32", _r("d"), _r("c")),
        _do("bra", Symbol("$L")),
    )
    assert found.instructions == {"lsu": 1, "fma": 2, "control": 1}


def test_a_chain_waits_for_each_of_its_links() -> None:
    found = _mix(
        _do("ld.global.f32", _r("a"), Address(_r("p"))),
        _do("ex2.approx.ftz.f32", _r("b"), _r("a")),
        _do("add.f32", _r("c"), _r("b"), ONE),
        _do("add.f32", _r("d"), _r("c"), ONE),
    )
    assert found.delays == {"global": 1, "mufu": 1, "fixed": 2}


def test_independent_loads_are_waited_for_once() -> None:
    loads = [_do("ld.global.f32", _r(f"a{i}"), Address(_r("p"), 4 * i)) for i in range(8)]
    assert _mix(*loads).delays == {"global": 1}


def test_a_load_whose_address_was_loaded_waits_twice() -> None:
    found = _mix(
        _do("ld.shared.u32", _r("a"), Address(_r("p"))),
        _do("ld.shared.u32", _r("b"), Address(_r("a"))),
    )
    assert found.delays == {"shared": 2}


def test_a_store_waits_and_nothing_waits_for_it() -> None:
    found = _mix(
        _do("add.f32", _r("a"), _r("b"), ONE),
        _do("st.shared.f32", Address(_r("p")), _r("a")),
        _do("add.f32", _r("a"), _r("b"), ONE),
    )
    assert found.delays == {"fixed": 1}


def test_accumulators_of_a_tensor_instruction_chain_it() -> None:
    accumulator = Vector(tuple(_r(f"c{i}") for i in range(4)))
    multiply = _do(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        accumulator,
        Vector((_r("a"),)),
        Vector((_r("b"),)),
        accumulator,
    )
    found = _mix(multiply, multiply, multiply)
    assert found.delays == {"tensor": 3}
    assert found.flops == {"f16": 3 * 4096}
    assert found.instructions == {"tensor": 3}


def test_a_barrier_separates_earlier_from_later_instructions() -> None:
    before, after = (
        _do("ld.shared.f32", _r("a"), Address(_r("p"))),
        _do("ld.shared.f32", _r("b"), Address(_r("p"))),
    )
    assert _mix(before, after).delays == {"shared": 1}
    assert _mix(before, _do("bar.sync", ONE), after).delays == {"shared": 2, "barrier": 1}


def test_a_guarded_write_waits_for_guard_and_old_value() -> None:
    found = _mix(
        _do("setp.lt.f32", _r("p"), _r("x"), ONE),
        _do("ex2.approx.ftz.f32", _r("a"), _r("x")),
        _do("add.f32", _r("a"), _r("x"), ONE, guard="p"),
    )
    assert found.delays == {"mufu": 1, "fixed": 1}


def test_an_empty_block_costs_nothing() -> None:
    assert _mix() == InstructionMix({}, {}, {}, 0, 0)


@pytest.mark.parametrize("space", ["shared", "global"])
def test_the_address_of_an_atomic_is_read(space: str) -> None:
    found = _mix(
        _do("add.s32", _r("p"), _r("q"), ONE),
        _do(f"atom.{space}.add.u32", _r("a"), Address(_r("p")), _r("v")),
    )
    assert found.delays == {"fixed": 1, space: 1}


def test_loads_of_several_iterations_of_a_loop_overlap() -> None:
    loop = (
        _do("ld.global.f32", _r("a"), Address(_r("p"))),
        _do("add.f32", _r("sum"), _r("sum"), _r("a")),
        _do("add.s64", _r("p"), _r("p"), Float(0, 64)),
    )
    assert instruction_mix(loop).delays == {"global": 1, "fixed": 1}
    assert instruction_mix(loop, rounds=64.0).delays == {"global": 0.25, "fixed": 1.75}


def test_rounds_that_are_left_over_of_a_loop_wait_one_by_one() -> None:
    loop = (
        _do("ld.global.f32", _r("a"), Address(_r("p"))),
        _do("add.f32", _r("sum"), _r("sum"), _r("a")),
        _do("add.s64", _r("p"), _r("p"), Float(0, 64)),
    )
    waits = {rounds: instruction_mix(loop, rounds=rounds).delays["global"] for rounds in (7.0, 8.0)}
    assert waits == {7.0: pytest.approx((1 + 3) / 7), 8.0: 0.25}
    assert instruction_mix(loop, rounds=1.0).delays["global"] == 1
    # a mean of several numbers of rounds: one and a half are left over in the mean
    assert instruction_mix(loop, rounds=7.5).delays["global"] == pytest.approx((1.5 + 1.5) / 7.5)


def test_what_copies_move_is_not_among_the_sectors_of_other_accesses() -> None:
    found = _mix(
        _do("ld.global.f32", _r("a"), Address(_r("p"))),
        _do("cp.async.cg.shared.global", Address(_r("s")), Address(_r("p")), Float(16, 32)),
    )
    assert (found.sectors, found.copy_sectors) == (4, 16)


def test_an_atomic_sum_of_floats_in_shared_memory_is_a_loop_around_a_swap() -> None:
    float_, integer = (
        _mix(_do(f"atom.shared.add.{kind}", _r("a"), Address(_r("p")), _r("v")))
        for kind in ("f32", "u32")
    )
    assert (float_.instructions["lsu"], integer.instructions["lsu"]) == (2, 1)
    assert (float_.delays, integer.delays) == ({"shared": 2}, {"shared": 1})


def test_a_loop_that_follows_pointers_waits_for_every_load() -> None:
    loop = (
        _do("ld.global.u64", _r("q"), Address(_r("p"))),
        _do("add.s64", _r("p"), _r("q"), Float(0, 64)),
    )
    assert instruction_mix(loop, rounds=64.0).delays == instruction_mix(loop).delays


def test_loads_do_not_overtake_stores_that_may_be_to_the_same_address() -> None:
    loop = (
        _do("ld.global.f32", _r("a"), Address(_r("p"))),
        _do("st.global.f32", Address(_r("q")), _r("a")),
        _do("add.s64", _r("p"), _r("p"), Float(0, 64)),
        _do("add.s64", _r("q"), _r("q"), Float(0, 64)),
    )
    assert instruction_mix(loop, rounds=64.0).delays["global"] == 1
    constant = (_do("ld.global.nc.f32", _r("a"), Address(_r("p"))), *loop[1:])
    assert instruction_mix(constant, rounds=64.0).delays["global"] == 0.25


def test_a_load_from_other_bytes_of_the_same_array_overtakes_a_store() -> None:
    store = _do("st.shared.f32", Address(_r("p"), 0), _r("a"))
    for offset, waits in ((0, 2), (4, 1)):
        load = _do("ld.shared.f32", _r("b"), Address(_r("p"), offset))
        found = _mix(_do("ld.shared.f32", _r("a"), Address(_r("q"))), store, load)
        assert found.delays == {"shared": waits}


@pytest.mark.parametrize(("may_diverge", "waits"), [(True, 2), (False, 1)])
def test_loads_stay_behind_an_exchange_of_lanes_that_may_have_diverged(
    may_diverge: bool, waits: int
) -> None:
    code = (
        _do("ld.global.f32", _r("a"), Address(_r("p"))),
        _do("add.f32", _r("sum"), _r("sum"), _r("a")),
        _do("shfl.sync.idx.b32", _r("x"), _r("y")),
        _do("ld.global.f32", _r("b"), Address(_r("q"))),
    )
    found = instruction_mix([Step(item, may_diverge=may_diverge) for item in code])
    assert found.delays["global"] == waits


def test_a_load_waits_for_l2_as_often_as_its_warp_had_not_loaded_the_sector() -> None:
    load = _do("ld.global.f32", _r("a"), Address(_r("p")))
    found = instruction_mix([Step(load, memory=SiteMemory(lines=32, missed=0.125))])
    assert found.delays == {"l1": 0.875, "l2": 0.125, "line": 31}
    assert found.lines == 32
