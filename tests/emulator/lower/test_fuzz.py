"""Mutated PTX gives an EmulatorError or a function that LLVM accepts; nothing is run."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.emulator.emulator_errors import EmulatorError, LaunchRefused, PtxError, Unsupported
from evoengine.emulator.lower.dispatch import HANDLERS
from evoengine.emulator.lower.kernel import lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.ptx.syntax import TYPE_BITS
from evoengine.emulator.run.codegen_child import InvalidIr, parse_module
from tests.emulator.lower.small_kernels import kernel
from tests.sampling import examples

TEXTS = Path(__file__).resolve().parent.parent / "ptx" / "texts"
REAL = {path.stem: path.read_text(encoding="utf-8") for path in sorted(TEXTS.glob("*.ptx"))}
OPERANDS = (
    *(
        "%r1",
        "%r2",
        "%q1",
        "%q2",
        "%f1",
        "%d1",
        "%p1",
        "!%p1",
        "%h1",
        "7",
        "-1",
        "0f3F800000",
        "0d3FF0000000000000",
        "%tid.x",
        "%laneid",
    ),
    *(
        "[%q1]",
        "[%q1+4]",
        "[%r1]",
        "{%r1, %r2}",
        "{%r1, %r2, %r3, %r4}",
        "{%f1, %f2}",
        "%r1|%p1",
        "_",
        "tile",
        "[tile]",
        "p0",
        "[p0]",
    ),
)
MODIFIERS = (
    *sorted(TYPE_BITS),
    *(
        "v2",
        "v4",
        "global",
        "shared",
        "local",
        "param",
        "const",
        "sync",
        "aligned",
        "rn",
        "rz",
        "sat",
        "ftz",
        "wide",
        "lo",
        "hi",
        "eq",
        "lt",
    ),
    *(
        "ltu",
        "add",
        "and",
        "exch",
        "cas",
        "idx",
        "up",
        "bfly",
        "ballot",
        "all",
        "any",
        "warp",
        "red",
        "popc",
        "volatile",
        "acquire",
        "release",
    ),
    *(
        "gpu",
        "m16n8k16",
        "m16n16k16",
        "row",
        "col",
        "load",
        "store",
        "a",
        "b",
        "c",
        "d",
        "m8n8",
        "x4",
        "trans",
        "async",
        "ca",
        "cg",
    ),
    *("wait_group", "approx"),
)


def survives(
    text: str, *, checked: bool = False, vector_memory: bool = True, threads: int = 96
) -> bool:
    """Whether every kernel of `text` becomes a function that LLVM accepts, or an EmulatorError."""
    try:
        module = parse(text)
        for name in [name for name, item in module.functions.items() if item.is_kernel]:
            function = inline_calls(module, name)
            layout = lay_out(module, function)
            layout.arena_base, layout.arena_bits = 1 << 40, 38
            parse_module(
                lower(
                    function, layout, (threads, 1, 1), checked=checked, vector_memory=vector_memory
                ).ir
            )
    except (EmulatorError, InvalidIr) as error:
        assert isinstance(error, (PtxError, Unsupported, LaunchRefused, InvalidIr)) and str(error)
        return False
    return True


def mutant(text: str, seed: int) -> str:
    """A text in which a few tokens are removed, doubled, swapped or replaced by others of the
    text.
    """
    chance = random.Random(seed)  # noqa: S311 - the same texts every time are wanted
    pieces = re.findall(r"\s+|[.%$\w]+|\S", text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        match chance.randrange(4):
            case 0:
                del pieces[place]
            case 1:
                pieces.insert(place, pieces[place])
            case 2:
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case 3:
                pieces[place] = pieces[other]
    return "".join(pieces)


@pytest.mark.parametrize("name", REAL)
def test_compiler_output_lowers_to_ir_that_llvm_accepts(name: str) -> None:
    kernels = re.findall(r"\.entry (\w+)", REAL[name])
    assert kernels
    survives(REAL[name])


@pytest.mark.parametrize("name", REAL)
@settings(max_examples=examples(60), derandomize=True, deadline=None)
@given(seed=st.integers(0, 1 << 32), checked=st.booleans(), vector_memory=st.booleans())
def test_mutated_compiler_output_gives_an_emulator_error_or_valid_ir(
    name: str, seed: int, checked: bool, vector_memory: bool
) -> None:
    survives(mutant(REAL[name], seed), checked=checked, vector_memory=vector_memory)


@settings(max_examples=examples(1200), derandomize=True, deadline=None)
@given(
    op=st.sampled_from(
        sorted({*HANDLERS, "bra", "ret", "exit", "bar", "barrier", "trap", "yield"})
    ),
    modifiers=st.lists(st.sampled_from(MODIFIERS), max_size=6),
    operands=st.lists(st.sampled_from(OPERANDS), max_size=5),
    guard=st.sampled_from(("", "@%p1 ", "@!%p2 ", "@%r1 ")),
    checked=st.booleans(),
)
def test_instructions_of_random_parts_give_an_emulator_error_or_valid_ir(
    op: str, modifiers: list[str], operands: list[str], guard: str, checked: bool
) -> None:
    text = guard + ".".join([op, *modifiers]) + " " + ", ".join(operands) + ";"
    survives(kernel(text, arrays=1, shared=64), checked=checked, vector_memory=not checked)


def test_the_random_instructions_are_not_all_refused() -> None:
    good = (
        "add.u32 %r1, %r2, 7;",
        "ld.global.v2.f32 {%f1, %f2}, [%q1+4];",
        "bar.sync 0;",
        "@%p1 bra L; L:",
        "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;",
    )
    assert all(survives(kernel(text, arrays=1, shared=64)) for text in good)
