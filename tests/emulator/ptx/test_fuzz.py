"""Any text gives PtxError, Unsupported or a module, in bounded time."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse
from tests.sampling import examples

REAL = [
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "texts").glob("*.ptx"))
]
HEAD = (
    ".version 8.3\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b32"
    " %r<9>;\n.reg .pred %p<9>;\n"
)
TOKENS = sorted(
    {token for text in REAL for token in re.findall(r"[.%$\w]+|\S", text)}
    | set("{}()[]<>@!|,;:+-~=\"'\\\0é")
)


def survives(text: str) -> None:
    """Parses and inlines `text`; the two errors that are allowed pass."""
    try:
        module = parse(text)
        for name in module.functions:
            if module.functions[name].is_kernel:
                inline_calls(module, name)
    except (PtxError, Unsupported) as error:
        assert str(error)


@settings(max_examples=examples(150), derandomize=True, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_give_an_error_or_a_module(data: bytes) -> None:
    survives(data.decode("latin-1"))
    survives(HEAD + data.decode("latin-1") + "}")


@settings(max_examples=examples(300), derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=60))
def test_random_tokens_give_an_error_or_a_module(tokens: list[str]) -> None:
    survives(" ".join(tokens))
    survives(HEAD + " ".join(tokens) + ";}")


def mutants(text: str, seed: int, count: int) -> Iterator[str]:
    """Texts in which a few tokens are removed, doubled, swapped or replaced."""
    chance = random.Random(seed)  # noqa: S311 - the same texts every time are wanted
    pieces = re.findall(r"\s+|[.%$\w]+|\S", text)
    for _ in range(count):
        new = list(pieces)
        for _ in range(chance.choice((1, 1, 2, 5))):
            place, other = chance.randrange(len(new)), chance.randrange(len(new))
            match chance.randrange(5):
                case 0:
                    del new[place]
                case 1:
                    new.insert(place, new[place])
                case 2:
                    new[place], new[other] = new[other], new[place]
                case 3:
                    new[place] = chance.choice(TOKENS)
                case 4:
                    new[place] = new[other]
        yield "".join(new)


@pytest.mark.parametrize("index", range(len(REAL)))
def test_mutated_compiler_output_gives_an_error_or_a_module(index: int) -> None:
    for mutant in mutants(REAL[index], seed=index, count=examples(120)):
        survives(mutant)


@pytest.mark.parametrize("index", range(len(REAL)))
def test_truncated_compiler_output_gives_an_error_or_a_module(index: int) -> None:
    chance = random.Random(index)  # noqa: S311 - the same places every time are wanted
    for _ in range(examples(60)):
        survives(REAL[index][: chance.randrange(len(REAL[index]))])


MANY = 60_000
BOMBS = {
    "braces": HEAD + "{" * MANY,
    "closing braces": HEAD + "}" * MANY,
    "brackets": HEAD + "add " + "[" * MANY,
    "comments": "/*" * MANY,
    "comment": "/*" + "/" * MANY,
    "quotes": '"' * MANY,
    "locations": ".loc 1 1 1 //" * MANY,
    "digits": HEAD + "mov.u32 %r1, " + "1" * MANY + ";}",
    "name": HEAD + "a" * MANY + ";}",
    "register with a long number": HEAD + "mov.u32 %r" + "1" * MANY + ", 0;}",
    "dots": HEAD + "add" + "." * MANY + ";}",
    "colons": HEAD + ":" * MANY,
    "minus": HEAD + "mov.u32 %r1, " + "-" * MANY + "1;}",
    "labels": HEAD + "".join(f"L{number}:" for number in range(MANY)) + "}",
    "labels that jump in a ring": (
        HEAD + "".join(f"L{n}: bra L{(n + 1) % 9999};" for n in range(9999)) + "}"
    ),
    "huge range": HEAD + ".reg .b32 %x<999999999>; mov.u32 %x77, 1; }",
    "huge array": ".global .b8 x[99999999999999999999];",
    "huge arrays": ".global .b8 x" + "[4294967295]" * 8 + ";",
    "initialiser": ".global .b8 x[8] = {" + "1," * MANY + "1};",
    "negative length": ".global .b8 x[-1];",
    "targets": (
        HEAD + "T: .branchtargets " + "L," * 9999 + "L; L: " + "brx.idx %r1, T;" * 9999 + "}"
    ),
    "null": "\0" * MANY,
    "surrogate": HEAD + "\ud800;}",
    "other digits": HEAD + "mov.u32 %r1, \u00b2\u0665;}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_texts_end_soon(name: str) -> None:
    start = time.process_time()
    survives(BOMBS[name])
    assert time.process_time() - start < 5


def test_a_text_beyond_the_limit_is_refused_unread() -> None:
    with pytest.raises(PtxError, match="16777217 characters"):
        parse(" " * ((1 << 24) + 1))


def test_functions_that_double_at_every_level_are_refused_before_they_fill_the_memory() -> None:
    levels = [".func f0() { .reg .b32 %r; mov.u32 %r, %tid.x; ret; }"]
    levels += [
        f".func f{n}() {{ call f{n - 1}, (); call f{n - 1}, (); ret; }}" for n in range(1, 60)
    ]
    text = (
        ".version 8.3\n.target sm_89\n" + "\n".join(levels) + "\n.entry k() { call f59, (); ret; }"
    )
    with pytest.raises(Unsupported, match="becomes too long"):
        inline_calls(parse(text), "k")


def test_a_chain_of_calls_a_thousand_deep_needs_no_deep_stack() -> None:
    levels = [".func f0() { .reg .b32 %r; mov.u32 %r, %tid.x; ret; }"]
    levels += [f".func f{n}() {{ call f{n - 1}, (); ret; }}" for n in range(1, 500)]
    kernel = inline_calls(parse("\n".join(levels) + "\n.entry k() { call f499, (); ret; }"), "k")
    assert [old.op for block in kernel.blocks for old in block.instructions] == ["mov", "ret"]
