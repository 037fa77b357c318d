"""A kernel gives the same results after its calls are inlined."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.ptx.simplify import falls_through, targets
from evoengine.emulator.ptx.syntax import (
    Address,
    Function,
    Guard,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from tests.emulator.ptx.scalar_interpreter import run

TEXTS = Path(__file__).parent / "texts"
HEAD = ".version 8.3\n.target sm_89\n.address_size 64\n"


def inlined(functions: str, body: str) -> Function:
    registers = ".reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<5>; .reg .b16 %rs<9>;"
    text = f"{HEAD}{functions}\n.entry k(.param .u64 a)\n{{ {registers}\n{body}\n}}"
    return inline_calls(parse(text), "k")


def listing(function: Function) -> list[Instruction]:
    return [old for block in function.blocks for old in block.instructions]


def ops(function: Function) -> list[str]:
    return [old.op for old in listing(function)]


ABS_DIFF = """
.func (.param .b32 r) diff(.param .b32 a, .param .b32 b) {
  .reg .b32 %r<9>; .reg .pred %p<2>;
  ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; sub.s32 %r3, %r1, %r2;
  st.param.b32 [r], %r3; setp.ge.s32 %p1, %r3, 0; @%p1 ret;
  sub.s32 %r4, %r2, %r1; st.param.b32 [r], %r4; ret;
}"""
CALL = """{{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], {0}; st.param.b32 [y], {1};
  call.uni (z), diff, (x, y); ld.param.b32 {2}, [z]; }}"""


@pytest.mark.parametrize(("left", "right"), [(3, 10), (10, 3), (4, 4)])
def test_values_are_passed_and_both_rets_continue_after_the_call(left: int, right: int) -> None:
    body = (
        f"mov.b32 %r1, {left}; mov.b32 %r2, {right};"
        + CALL.format("%r1", "%r2", "%r3")
        + CALL.format("%r3", "%r2", "%r4")
    )
    function = inlined(ABS_DIFF, body)
    assert "call" not in ops(function)
    registers = run(function)
    assert registers["%r3"] == abs(left - right)
    assert registers["%r4"] == abs(abs(left - right) - right)


def test_registers_and_numbers_may_be_passed_without_variables() -> None:
    assert run(inlined(ABS_DIFF, "mov.b32 %r1, 3; call (%r2), diff, (%r1, 9);"))["%r2"] == 6


@pytest.mark.parametrize(("wanted", "result"), [(0, 77), (1, 6)])
def test_a_guarded_call_happens_only_where_its_guard_holds(wanted: int, result: int) -> None:
    body = (
        f"mov.b32 %r1, {wanted}; setp.ne.s32 %p1, %r1, 0; mov.b32 %r2, 77; @%p1 call (%r2), diff,"
        " (3, 9);"
    )
    assert run(inlined(ABS_DIFF, body))["%r2"] == result


def test_a_function_called_in_a_function_called_twice_keeps_its_copies_apart() -> None:
    outer = """.func (.param .b32 r) both(.param .b32 a) { .reg .b32 %r<9>; ld.param.b32 %r1, [a];
      call (%r2), diff, (%r1, 10); call (%r3), diff, (%r1, 100); mul.lo.s32 %r4, %r2, %r3; st.param.b32 [r], %r4; ret; }"""
    function = inlined(ABS_DIFF + outer, "call (%r1), both, (20); call (%r2), both, (30);")
    registers = run(function)
    assert (registers["%r1"], registers["%r2"]) == (10 * 80, 20 * 70)
    assert len({block.label for block in function.blocks}) == len(function.blocks)


def test_a_loop_in_a_callee_keeps_looping() -> None:
    power = """.func (.param .b32 r) power(.param .b32 n) { .reg .b32 %r<9>; .reg .pred %p<2>; ld.param.b32 %r1, [n]; mov.b32 %r2, 1;
      $L: mul.lo.s32 %r2, %r2, 3; add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L; st.param.b32 [r], %r2; ret; }"""
    registers = run(inlined(power, "call (%r1), power, (4); call (%r2), power, (2);"))
    assert (registers["%r1"], registers["%r2"]) == (81, 9)


BYTES = """.func (.param .b32 r) signed(.param .align 4 .b8 s[8]) { .reg .b32 %r<9>; .reg .b16 %rs<3>;
  ld.param.s8 %rs1, [s+5]; cvt.s32.s16 %r1, %rs1; ld.param.u8 %r2, [s+4]; add.s32 %r3, %r1, %r2; st.param.b32 [r], %r3; ret; }"""


def test_bytes_of_a_structure_are_registers_that_extend_as_their_loads_say() -> None:
    body = """mov.b16 %rs1, 0xFFFE; { .param .align 4 .b8 x[8]; .param .b32 z;
      st.param.v2.b8 [x+4], {%rs1, %rs1}; call (z), signed, (x); ld.param.b32 %r1, [z]; }"""
    function = inlined(BYTES, body)
    assert run(function)["%r1"] == 0xFE - 2
    assert not function.variables


def test_the_low_part_of_a_wider_parameter_may_be_read_alone() -> None:
    low = """.func (.param .b32 r) low(.param .b32 c) { .reg .b32 %r<3>; .reg .b16 %rs<3>;
      ld.param.s8 %rs1, [c]; cvt.s32.s16 %r1, %rs1; st.param.b32 [r], %r1; ret; }"""
    assert run(inlined(low, "call (%r1), low, (0x12FF);"))["%r1"] == 0xFFFFFFFF


def test_a_structure_read_in_other_parts_than_written_becomes_a_local_variable() -> None:
    whole = ".func f(.param .align 8 .b8 s[8]) { .reg .b64 %rd<3>; ld.param.b64 %rd1, [s]; ret; }"
    function = inlined(
        whole, "{ .param .align 8 .b8 x[8]; st.param.v2.b32 [x], {%r1, %r2}; call f, (x); }"
    )
    assert {name: variable.space for name, variable in function.variables.items()} == {
        "x.1": "local"
    }
    assert [old.modifiers[0] for old in listing(function) if old.op in ("ld", "st")] == [
        "local",
        "local",
    ]


def test_a_structure_whose_address_is_taken_becomes_a_local_variable() -> None:
    function = inline_calls(
        parse((TEXTS / "structures.ptx").read_text(encoding="utf-8")), "_Z1kPf1Si"
    )
    locals_ = [
        variable
        for variable in function.variables.values()
        if variable.space == "local" and variable.name.startswith("param")
    ]
    assert [variable.size for variable in locals_] == [24, 24]
    moved = {old.operands[1] for old in listing(function) if old.op == "mov"}
    assert {Symbol(variable.name) for variable in locals_} <= moved
    assert not [variable for variable in function.variables.values() if variable.space == "param"]


def test_calls_without_a_body_stay_with_registers_as_arguments() -> None:
    function = inline_calls(
        parse((TEXTS / "structures.ptx").read_text(encoding="utf-8")), "_Z1kPf1Si"
    )
    calls = [old for old in listing(function) if old.op == "call"]
    assert [old.operands[1] for old in calls] == [
        Symbol("__ev_sinf"),
        Symbol("vprintf"),
        Symbol("__ev_sinf"),
    ]
    for call in calls:
        results, _, arguments = call.operands
        assert isinstance(results, Vector) and isinstance(arguments, Vector)
        assert all(
            isinstance(item, Register) and item.name in function.registers
            for item in results.items + arguments.items
        )
    assert [function.registers[item.name] for item in calls[1].operands[2].items] == ["b64", "b64"]  # type: ignore[union-attr]


def test_shared_variables_of_a_device_function_are_one_for_all_its_copies() -> None:
    counter = (
        ".func f() { .shared .align 4 .b8 tile[16]; .local .b8 own[4]; .reg .b64 %rd<2>; mov.u64"
        " %rd1, tile; mov.u64 %rd1, own; ret; }"
    )
    function = inlined(counter, ".shared .b8 other[4]; call f, (); call f, ();")
    assert sorted(function.variables) == ["other", "own.i1", "own.i2", "tile"]


def test_shared_variables_of_two_functions_with_one_name_stay_two() -> None:
    two = "".join(
        f".func {f}() {{ .shared .b8 tile[{n}]; .reg .b64 %rd; mov.u64 %rd, tile; ret; }}"
        for f, n in (("f", 4), ("g", 8))
    )
    function = inlined(two, "call f, (); call g, ();")
    assert {name: old.size for name, old in function.variables.items()} == {"tile": 4, "tile.g": 8}
    assert [old.operands[1] for old in listing(function) if old.op == "mov"] == [
        Symbol("tile"),
        Symbol("tile.g"),
    ]


def test_the_module_stays_as_it_was() -> None:
    text = (TEXTS / "structures.ptx").read_text(encoding="utf-8")
    module = parse(text)
    inline_calls(module, "_Z1kPf1Si")
    assert module == parse(text)


def test_recursion_is_unsupported_and_names_the_function() -> None:
    with pytest.raises(Unsupported, match=r"recursion: _Z3fibi calls itself` \(line 15\)"):
        inline_calls(
            parse((TEXTS / "switch_and_recursion.ptx").read_text(encoding="utf-8")), "_Z1kPf1Sicd"
        )
    with pytest.raises(Unsupported, match="recursion: f calls itself through g"):
        inlined(
            ".func g(); .func f() { call g, (); ret; } .func g() { call f, (); ret; }",
            "call f, ();",
        )


def test_calls_through_pointers_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="call through a pointer"):
        inlined("", "P: .callprototype _ (); call %rd1, (), P;")


def test_an_unknown_kernel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PtxError, match="no kernel 'q'; known kernels: a, b"):
        inline_calls(parse(".entry b() { ret; } .entry a() { ret; } .func q() { ret; }"), "q")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("call diff, (%r1);", "does not fit diff"),
        ("{ .param .b32 x; call (x), diff, (x, 1); }", "one .param variable twice"),
        ("{ .param .b16 x; .param .b32 z; call (z), diff, (x, 1); }", "reaches outside"),
        ("call (%r1), diff, (a, 1);", "does not fit a"),
    ],
)
def test_calls_that_do_not_match_are_refused(call: str, message: str) -> None:
    with pytest.raises((PtxError, Unsupported), match=message):
        inlined(ABS_DIFF, call)


def test_an_early_return_is_a_guarded_exit_in_place() -> None:
    function = inlined("", "@%p1 bra END; mov.b32 %r1, 1; END: ret;")
    assert [old.op for old in function.blocks[0].instructions] == ["exit", "mov", "ret"]
    assert function.blocks[0].instructions[0].guard == Guard(Register("%p1"), negated=False)
    assert len(function.blocks) == 1


def test_a_branch_around_a_return_is_a_guarded_exit_with_the_guard_negated() -> None:
    function = inlined("", "@%p1 bra GO; ret; GO: mov.b32 %r1, 1; ret;")
    assert [(old.op, old.guard) for old in listing(function)] == [
        ("exit", Guard(Register("%p1"), True)),
        ("mov", None),
        ("ret", None),
    ]


def test_jumps_to_jumps_empty_and_unreachable_blocks_are_removed() -> None:
    body = (
        "bra A; mov.b32 %r9, 9; A: B: bra C; D: mov.b32 %r8, 8; C: mov.b32 %r1, 1; bra.uni E; E:"
        " ret;"
    )
    assert [old.op for old in listing(inlined("", body))] == ["mov", "ret"]


def test_an_endless_loop_stays() -> None:
    function = inlined("", "A: bra B; B: bra A;")
    last = function.blocks[-1]
    assert not falls_through(last)
    assert targets(last)[0] in {block.label for block in function.blocks}


def test_the_last_block_never_falls_off_the_end_and_every_target_is_there() -> None:
    for name in ("structures", "inlined_headers"):
        module = parse((TEXTS / f"{name}.ptx").read_text(encoding="utf-8"))
        for kernel in (
            function.name for function in module.functions.values() if function.is_kernel
        ):
            function = inline_calls(module, kernel)
            labels = [block.label for block in function.blocks]
            assert not falls_through(function.blocks[-1])
            assert {label for block in function.blocks for label in targets(block)} <= set(labels)
            assert all(named(old) <= function.registers.keys() for old in listing(function))


def named(instruction: Instruction) -> set[str]:
    """All registers of an instruction."""
    found = {instruction.guard.register.name} if instruction.guard else set()
    todo: list[Operand] = list(instruction.operands)
    while todo:
        match todo.pop():
            case Register(name=name):
                found.add(name)
            case Address(base=Register(name=name)):
                found.add(name)
            case Vector(items=items):
                todo += items
    return found
