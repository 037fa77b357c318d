"""A dispatcher of many blocks has no phis, and its blocks run as before."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from evoengine.emulator.lower.kernel import lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.lower.pinned_slots import MOST_BLOCKS
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.run.codegen_child import initialise_llvm
from tests.emulator.lower.small_kernels import kernel, run

THREADS = 64


def chain(steps: int) -> str:
    """A body whose threads leave at the step of their number; each step adds to what they keep."""
    lines = [
        f"setp.eq.u32 %p1, %t, {step}; @%p1 bra END;"
        f" add.u32 %r1, %r1, {step + 1}; xor.b32 %r2, %r2, %r1;"
        for step in range(steps)
    ]
    return "\n".join(
        [
            "mov.u32 %r1, 0; mov.u32 %r2, %t;",
            *lines,
            "END: st.global.u32 [%own0], %r1; st.global.u32 [%own1], %r2;",
        ]
    )


def kept_after(steps: int) -> tuple[list[int], list[int]]:
    """What each thread keeps."""
    sums, mixed = [0] * THREADS, list(range(THREADS))
    for thread in range(THREADS):
        for step in range(min(thread, steps)):
            sums[thread] += step + 1
            mixed[thread] ^= sums[thread]
    return sums, mixed


def phis_of_dispatchers(body: str) -> int:
    """The phis of dispatchers when LLVM has promoted what it can to registers."""
    module = parse(kernel(body, arrays=2))
    function = inline_calls(module, "k")
    layout = lay_out(module, function)
    ir = lower(function, layout, (THREADS, 1, 1), checked=False, vector_memory=False).ir
    initialise_llvm()
    parsed, passes = llvm.parse_assembly(ir), llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    target = llvm.Target.from_default_triple().create_target_machine()
    passes.run(parsed, llvm.create_pass_builder(target, llvm.PipelineTuningOptions()))
    dispatchers = re.findall(r"\ndispatch\d+:[^\n]*\n((?:  %\S+ = phi [^\n]*\n)*)", str(parsed))
    assert dispatchers
    return sum(text.count(" = phi ") for text in dispatchers)


@pytest.mark.parametrize("steps", [4, MOST_BLOCKS + 8])
def test_what_lanes_keep_in_a_region_of_any_size_is_right(steps: int) -> None:
    zeros = [np.zeros(THREADS, np.uint32), np.zeros(THREADS, np.uint32)]
    found = run(chain(steps), zeros, threads=THREADS)
    sums, mixed = kept_after(steps)
    assert found.arrays[0].tolist() == sums
    assert found.arrays[1].tolist() == mixed


def test_the_dispatcher_of_a_large_region_alone_has_no_phis() -> None:
    assert phis_of_dispatchers(chain(8)) > 2
    assert phis_of_dispatchers(chain(MOST_BLOCKS + 8)) == 0
