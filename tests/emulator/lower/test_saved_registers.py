from __future__ import annotations

import re

import pytest

from evoengine.emulator.front.clang import compile_cuda
from evoengine.emulator.lower.kernel import lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.lower.saved_registers import KEEP_APART, LOADS_AT_A_TIME
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse

KEPT = 100
KERNEL = f"""extern "C" __global__ void k(float* a) {{
    float kept[{KEPT}];
    #pragma unroll
    for (int i = 0; i < {KEPT}; ++i) kept[i] = a[i * 32 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < {KEPT}; ++i) a[i * 32 + (threadIdx.x ^ 1)] = kept[i];
}}
"""


@pytest.mark.parametrize("vector_memory", [False, True])
def test_few_registers_are_restored_between_two_fences(vector_memory: bool) -> None:
    ptx = compile_cuda(KERNEL, name="k.cu", macros={}, arch="sm_90", kernels=["k"]).ptx
    module = parse(ptx)
    function = inline_calls(module, "k")
    ir = lower(
        function,
        lay_out(module, function),
        (32, 1, 1),
        checked=True,
        vector_memory=vector_memory,
    ).ir
    resumed = re.split(r"\n\w+:", ir.split("\nresume1:")[1])[0]
    runs = [piece.count("= load <32 x ") for piece in resumed.split(KEEP_APART)]
    assert sum(runs) >= KEPT
    assert max(runs) <= LOADS_AT_A_TIME
