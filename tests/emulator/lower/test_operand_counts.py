"""Inline PTX with too few or too many operands for the C functions that implement it."""

from __future__ import annotations

import pytest

from evoengine.emulator.device import Emulator
from evoengine.emulator.emulator_errors import EmulatorError

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry odd(.param .u64 p) {
    .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    INSTRUCTION
    ret;
}
"""
FORMS = [
    ("cvt.rn.satfinite.e4m3x2.f32 %h1", "%f1", 2),
    ("cvt.rn.satfinite.e4m3x2.f16x2 %h1", "%r1", 1),
    ("cvt.rna.tf32.f32 %r1", "%f1", 1),
    ("add.rm.f32 %f1", "%f2", 2),
    ("fma.rm.f32 %f1", "%f2", 3),
    ("sqrt.rm.f32 %f1", "%f2", 1),
    ("add.f16 %h1", "%h2", 2),
    ("fma.rn.f16 %h1", "%h2", 3),
    ("dp4a.u32.u32 %r1", "%r2", 3),
    ("fns.b32 %r1", "%r2", 3),
    ("bfind.u32 %r1", "%r2", 1),
    ("prmt.b32.f4e %r1", "%r2", 3),
    ("ex2.approx.f32 %f1", "%f2", 1),
    ("atom.global.add.u32 %r1, [%rd1]", "%r2", 1),
    ("atom.global.cas.b32 %r1, [%rd1]", "%r2", 2),
]


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator("h200", threads=1)


def code_of(emulator: Emulator, begin: str, source: str, count: int) -> None:
    """Compiles the kernel; raises what a launch would raise."""
    text = HEAD.replace("INSTRUCTION", ", ".join([begin, *[source] * count]) + ";")
    program = emulator.load(text)
    try:
        program._compile("odd", (32, 1, 1), checked=False)
    finally:
        program.close()


@pytest.mark.parametrize(
    ("begin", "source", "right"), FORMS, ids=[begin.partition(" ")[0] for begin, _, _ in FORMS]
)
def test_an_instruction_has_as_many_operands_as_its_function_takes(
    emulator: Emulator, begin: str, source: str, right: int
) -> None:
    code_of(emulator, begin, source, right)
    # atomics may have a cache policy as last operand, which is ignored
    more = set() if begin.startswith("atom") else {right + 100}
    for wrong in {0, right - 1, *more} - {right}:
        with pytest.raises(EmulatorError):
            code_of(emulator, begin, source, wrong)
