"""Every piece of PTX syntax, hand-written and from clang, is parsed to the expected values."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.ptx.syntax import (
    Address,
    Float,
    Function,
    Guard,
    Instruction,
    Integer,
    Not,
    Operand,
    Pair,
    Parameter,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

TEXTS = Path(__file__).parent / "texts"
REGISTERS = (
    ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<5>; .reg .b16 %rs<5>; .reg .f32 %f<9>;"
)
R1, R2, RD1, P1, P2 = (
    Register("%r1"),
    Register("%r2"),
    Register("%rd1"),
    Register("%p1"),
    Register("%p2"),
)


def kernel(body: str, before: str = "") -> Function:
    return parse(
        f"{before}\n.visible .entry k(.param .u64 a)\n{{ {REGISTERS}\n{body}\n}}"
    ).functions["k"]


def first(body: str, before: str = "") -> Instruction:
    return next(old for block in kernel(body, before).blocks for old in block.instructions)


def text_of(name: str) -> str:
    return (TEXTS / f"{name}.ptx").read_text(encoding="utf-8")


OPERANDS: dict[str, tuple[Operand, ...]] = {
    "add.s32 %r1, %r2, -7;": (R1, R2, Integer(-7)),
    "mov.u32 %r1, 0xFFU;": (R1, Integer(255)),
    "mov.u32 %r1, 0b101;": (R1, Integer(5)),
    "mov.u32 %r1, 017;": (R1, Integer(15)),
    "mov.u32 %r1, ~1;": (R1, Integer(-2)),
    "mov.u32 %r1, WARP_SZ;": (R1, Integer(32)),
    "mov.f32 %f1, 0f3F800000;": (Register("%f1"), Float(0x3F800000, 32)),
    "mov.f32 %f1, -0f3F800000;": (Register("%f1"), Float(0xBF800000, 32)),
    "mov.f64 %rd1, 0d3FF0000000000000;": (RD1, Float(0x3FF0000000000000, 64)),
    "mov.f64 %rd1, 1.5e1;": (RD1, Float(0x402E000000000000, 64)),
    "mov.u32 %r1, %tid.x;": (R1, Special("%tid.x")),
    "ld.global.u32 %r1, [%rd1];": (R1, Address(RD1)),
    "ld.global.u32 %r1, [%rd1+8];": (R1, Address(RD1, 8)),
    "ld.global.u32 %r1, [%rd1+-8];": (R1, Address(RD1, -8)),
    "ld.global.u32 %r1, [%rd1-8];": (R1, Address(RD1, -8)),
    "ld.global.u32 %r1, [x+4];": (R1, Address(Symbol("x"), 4)),
    "ld.shared.u32 %r1, [16];": (R1, Address(Integer(16))),
    "mov.u64 %rd1, x+4;": (RD1, Symbol("x", 4)),
    "ld.param.u64 %rd1, [a];": (RD1, Address(Symbol("a"))),
    "ld.global.L1::no_allocate.v2.f32 {%r1, _}, [%rd1];": (Vector((R1, Sink())), Address(RD1)),
    "setp.lt.and.f32 %p1|%p2, %r1, %r2, !%p1;": (Pair(P1, P2), R1, R2, Not(P1)),
    "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;": (
        Pair(R1, P1),
        R2,
        Integer(16),
        Integer(31),
        Integer(-1),
    ),
    "atom.global.add.u32 _, [%rd1], 1;": (Sink(), Address(RD1), Integer(1)),
    "mov.b64 {%r1, %r2}, %rd1;": (Vector((R1, R2)), RD1),
    "membar.gl;": (),
    "call (%r1), f, (%r2, 3);": (Vector((R1,)), Symbol("f"), Vector((R2, Integer(3)))),
    "call f;": (Vector(()), Symbol("f"), Vector(())),
    "call.uni %rd1, (%r2), P;": (Vector(()), RD1, Vector((R2,)), Symbol("P")),
}
DECLARATIONS = (
    ".global .align 4 .b8 x[16];\n.extern .func (.param .b32 r) f (.param .b32 a, .param .b32 b);"
)


@pytest.mark.parametrize("statement", OPERANDS)
def test_operands_become_values(statement: str) -> None:
    assert first(statement, DECLARATIONS).operands == OPERANDS[statement]


@pytest.mark.parametrize(
    "word",
    [
        "cvt.rn.f16x2.e4m3x2",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "cp.async.cg.shared.global.L2::128B",
        "bar.sync",
    ],
)
def test_an_opcode_is_split_into_name_and_modifiers(word: str) -> None:
    instruction = first(f"{word} %r1;")
    assert ".".join((instruction.op, *instruction.modifiers)) == word
    assert instruction.type == word.split(".")[-1]


def test_guards_are_kept_apart_from_the_operands() -> None:
    assert first("@%p1 mov.u32 %r1, 1;").guard == Guard(P1, negated=False)
    assert first("@!%p2 mov.u32 %r1, 1;").guard == Guard(P2, negated=True)


def test_the_text_of_an_instruction_has_no_comments_tabs_or_semicolon() -> None:
    assert (
        first("@%p1\tadd.s32 \t%r1, /* why */ %r2,\n  4 ; // end").text
        == "@%p1 add.s32 %r1, %r2, 4"
    )


def test_blocks_end_at_labels_and_after_every_branch() -> None:
    function = kernel(
        "mov.u32 %r1, 1; @%p1 bra L; mov.u32 %r1, 2; L: @%p1 exit; @%p2 ret; mov.u32 %r1, 3;"
    )
    assert [[old.op for old in block.instructions] for block in function.blocks] == [
        ["mov", "bra"],
        ["mov"],
        ["exit"],
        ["ret"],
        ["mov", "ret"],
    ]
    assert function.blocks[2].label == "L"
    assert len({block.label for block in function.blocks}) == 5


def test_names_of_inner_scopes_are_unique_and_do_not_leak() -> None:
    body = (
        "{ .reg .pred p; setp.eq.u32 p, %r1, 0; L: @p bra L; } { .reg .pred p; setp.eq.u32 p, %r1,"
        " 1; L: @p bra L; }"
    )
    function = kernel(body)
    jumps = [old for block in function.blocks for old in block.instructions if old.op == "bra"]
    assert [jump.operands for jump in jumps] == [(Symbol("L.1"),), (Symbol("L.2"),)]
    assert [jump.guard.register.name for jump in jumps if jump.guard] == ["p.1", "p.2"]
    assert function.registers["p.2"] == "pred"
    with pytest.raises(PtxError, match="expected a predicate after '@', got 'p'"):
        kernel("{ .reg .pred p; } @p bra L; L:")


def test_a_jump_out_of_a_scope_reaches_the_outer_label() -> None:
    jumps = [
        old
        for block in kernel("{ bra L; } L: ret;").blocks
        for old in block.instructions
        if old.op == "bra"
    ]
    assert jumps[0].operands == (Symbol("L"),)


def test_only_used_registers_of_a_range_are_listed() -> None:
    assert kernel("mov.u32 %r7, %r19;").registers == {"%r7": "b32", "%r19": "b32"}


@pytest.mark.parametrize("name", ["%r20", "%q1", "%r01", "%tid.w"])
def test_an_undeclared_register_is_refused(name: str) -> None:
    with pytest.raises(PtxError, match=f"PTX line 4: register {name} is not declared"):
        kernel(f"mov.u32 {name}, 1;")


def test_a_range_may_start_with_the_name_of_another() -> None:
    assert kernel(".reg .b64 %r1x<3>; .reg .b16 q<30>, q2<5>; mov.b16 q29, q24;").registers == {
        "q29": "b16",
        "q24": "b16",
    }


def test_parameters_of_a_kernel_are_laid_out_as_by_cuda() -> None:
    text = (
        ".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 16 .b8 c[20],"
        " .param .f32 d, .param .b8 e[3]){ret;}"
    )
    assert parse(text).functions["k"].parameters == (
        Parameter("a", "u8", 1, 1, 0),
        Parameter("b", "u64", 8, 8, 8),
        Parameter("c", "b8", 20, 16, 16),
        Parameter("d", "f32", 4, 4, 36),
        Parameter("e", "b8", 3, 1, 40),
    )


def test_directives_of_a_kernel_are_kept() -> None:
    text = '.entry k() .maxntid 128, 2, 1 .minnctapersm 2 .maxnreg 64 .pragma "nounroll"; { ret; }'
    assert parse(text).functions["k"].directives == {
        "maxntid": (128, 2, 1),
        "minnctapersm": (2,),
        "maxnreg": (64,),
    }


def test_initial_contents_are_little_endian_bytes() -> None:
    variables = parse(
        ".global .u32 a = 7; .global .align 4 .b16 b[3] = {1, -2}; .const .f32 c[2] = {0f3F800000,"
        " 2.0};.global .f64 d = 0d3FF0000000000000;"
    ).variables
    assert variables["a"].data == b"\7\0\0\0"
    assert (variables["b"].data, variables["b"].size, variables["b"].align) == (
        b"\1\0\xfe\xff",
        6,
        4,
    )
    assert (variables["c"].data, variables["c"].space) == (b"\0\0\x80\x3f\0\0\0\x40", "const")
    assert variables["d"].data == b"\0\0\0\0\0\0\xf0\x3f"


def test_initial_contents_may_hold_addresses() -> None:
    masks = ", ".join(f"0xFF{'00' * place}(generic(a)+4)" for place in range(8))
    variables = parse(
        ".global .b8 a[8]; .global .u64 b[3] = {a, 5, generic(a)+4}; .global .align 8 .b8 c[16]"
        f" = {{1,0,0,0,0,0,0,0, {masks}}};"
    ).variables
    assert variables["b"].addresses == ((0, Symbol("a")), (16, Symbol("a", 4)))
    assert variables["b"].data == bytes(8) + b"\5" + bytes(15)
    assert variables["c"].addresses == ((8, Symbol("a", 4)),)


def test_shared_memory_without_a_length_has_size_zero() -> None:
    variable = parse(".extern .shared .align 16 .b8 dynamic[];").variables["dynamic"]
    assert (variable.size, variable.align, variable.extern, variable.space) == (
        0,
        16,
        True,
        "shared",
    )


def test_variables_of_a_body_stay_in_the_function_and_global_ones_go_to_the_module() -> None:
    body = (
        ".shared .align 4 .b8 tile[64]; .local .b8 stack[8]; .global .u32 count = 3; mov.u64 %rd1,"
        " count;"
    )
    module = parse(f".entry k(){{ {REGISTERS} {body} }}")
    assert {name: variable.space for name, variable in module.functions["k"].variables.items()} == {
        "tile": "shared",
        "stack": "local",
    }
    assert module.variables["count"].data == b"\3\0\0\0"


def test_declared_functions_are_those_without_a_body() -> None:
    module = parse(
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ; .func f(); .func"
        " f() { ret; }"
    )
    assert (module.declared, list(module.functions)) == (frozenset({"vprintf"}), ["f"])


def test_brx_carries_the_labels_of_its_list() -> None:
    function = kernel("T: .branchtargets A, B; brx.idx %r1, T; A: ret; B: ret;")
    assert function.blocks[0].instructions[0].operands == (R1, Vector((Symbol("A"), Symbol("B"))))


def test_the_pragma_that_forbids_to_unroll_a_loop_is_kept_as_an_instruction() -> None:
    (block,) = kernel('.pragma "nounroll"; ret;').blocks
    assert [item.op for item in block.instructions] == ["pragma", "ret"]
    assert block.instructions[0].has("nounroll")


def test_sections_pragmas_prototypes_and_files_are_skipped() -> None:
    text = (
        '.file 1 "a.cu"\n.section .debug_str { .b8 1, 2\n x: { .b8 3 } }\n.entry k() { P:'
        ' .callprototype (.param .b32 _) _ (.param .b64 _); .pragma "used_bytes_mask 4"; ret; }\n.file 2 "."'
        ' "b.h", 1, 2'
    )
    assert [
        old.op for block in parse(text).functions["k"].blocks for old in block.instructions
    ] == ["ret"]


def test_what_the_compiler_has_moved_is_near_the_last_line_before_it() -> None:
    text = ".entry k() {\nmembar.cta;\n.loc 1 10 0\nmembar.cta;\n.loc 1 0 5\nmembar.gl;\nret; }"
    found = parse(text).functions["k"].blocks[0].instructions
    places = [(item.line, item.near) for item in found]
    assert places == [(0, 0), (10, 10), (0, 10), (0, 10)]


def test_lines_are_those_of_the_file_with_the_kernel() -> None:
    text = (
        ".func f() {\n.loc 2 50 1\nmembar.gl;\nret; }\n.entry k() {\n.loc 1 10 0\nmembar.cta;\n.loc"
        " 1 11 3\nmembar.cta;\n.loc 2 70 1, function_name $s, inlined_at 1 11 3\nmembar.cta;\n.loc"
        " 2 80 1, function_name $s+4, inlined_at 2 70 1\nmembar.cta;\n.loc 2 90"
        " 1\nmembar.cta;\nret; }"
    )
    module = parse(text)
    assert [old.line for old in module.functions["k"].blocks[0].instructions] == [
        10,
        11,
        11,
        11,
        0,
        0,
    ]
    assert module.functions["f"].blocks[0].instructions[0].line == 0


def test_lines_inside_headers_come_from_the_chain_in_clangs_comment() -> None:
    lines = {
        old.text.split()[0]: old.line
        for block in parse(text_of("inlined_headers")).functions["_Z1kPf"].blocks
        for old in block.instructions
    }
    assert lines["fma.rn.f32"] == 5
    assert lines["div.rn.f32"] == 5
    assert lines["st.global.b32"] == 8


def test_compiler_output_with_switch_calls_and_inline_assembly_is_read() -> None:
    module = parse(text_of("switch_and_recursion"))
    function = module.functions["_Z1kPf1Sicd"]
    assert function.is_kernel and module.declared == {"vprintf"}
    assert (module.version, module.target) == ("8.3", "sm_89")
    assert [(old.name, old.offset, old.size) for old in function.parameters][1:4] == [
        ("_Z1kPf1Sicd_param_1", 8, 24),
        ("_Z1kPf1Sicd_param_2", 32, 4),
        ("_Z1kPf1Sicd_param_3", 36, 1),
    ]
    brx = next(old for block in function.blocks for old in block.instructions if old.op == "brx")
    assert isinstance(brx.operands[1], Vector) and len(brx.operands[1].items) == 7


REFUSED = {
    "bra L;": "label L is not in this function",
    "L: L: ret;": "label L is defined twice",
    "brx.idx %r1, T;": "list of branch targets T is not declared",
    "call g, ();": "function g is called but not declared",
    "mov.u32 %r1, nowhere;": "expected an operand, got 'nowhere'",
    "mov.u32 %r1 %r2;": "expected ',', got '%r2'",
    "mov..u32 %r1, 1;": "expected an instruction, got 'mov..u32'",
    "mov.u32 %r1, 0xFFu;": "expected an operand, got '0xFFu'",
    "mov.u32 %r1, 99999999999999999999;": "expected an operand, got '99999999999999999999'",
    ".reg .b32 x; .reg .b32 x;": "register x is declared twice",
    ".reg .b33 x;": "expected a type, got '.b33'",
    ".shared .b8 t[4]; .shared .b8 t[4];": "t is declared twice",
    ".bogus;": "unknown directive '.bogus'",
    "ld.global.u32 %r1, [%rd1;": "expected ']', got ';'",
    "@5 bra L;": "expected a predicate after '@', got '5'",
    "/* open": "a comment without an end",
    "{": "expected an instruction, got the end",
}


@pytest.mark.parametrize("body", REFUSED)
def test_an_error_says_what_was_expected_and_what_was_found(body: str) -> None:
    with pytest.raises(PtxError) as caught:
        kernel(body)
    assert REFUSED[body] in str(caught.value)
    assert caught.value.line >= 3 or "not declared" in str(caught.value)


def test_an_error_names_the_line_of_the_ptx() -> None:
    with pytest.raises(PtxError, match="PTX line 4: ") as caught:
        parse(".version 8.3\n// a comment\n.entry k() {\n  bogus %r1;\n}")
    assert caught.value.line == 4


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".entry k() { .reg .v4 .f32 v; }", ".reg .v2"),
        (".global .texref t;", ".texref"),
        (
            (
                f".entry k() {{ {REGISTERS} .global .b8 t[4]; tex.2d.v4.f32.f32 %r1, [t, {{%f1,"
                " %f2}]; }"
            ),
            "tex.2d.v4.f32.f32",
        ),
        (".func f(.reg .b32 a) { ret; }", ".reg parameters"),
        (".address_size 32", ".address_size 32"),
    ],
)
def test_ptx_that_the_syntax_tree_lacks_is_unsupported(text: str, what: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert caught.value.what == what


def test_five_thousand_instructions_take_less_than_a_quarter_of_a_second() -> None:
    body = "\n".join(
        f"\t.loc\t1 {n % 90} 7   // a.cu:{n % 90}:7\n\tfma.rn.f32 \t%f{n % 9}, %f1, %f2,"
        f" 0f3F80{n:04X};"
        for n in range(5000)
    )
    times = []
    for _ in range(3):
        start = time.process_time()
        kernel(body)
        times.append(time.process_time() - start)
    assert min(times) < 0.25  # 0.06 s when measured; room for slow machines
