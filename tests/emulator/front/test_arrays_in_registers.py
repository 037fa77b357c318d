"""What NVIDIA's compiler keeps in registers is no local memory in our PTX."""

from __future__ import annotations

import re

import pytest

from benchmarks.corpora import HONEST, parsed
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.emulator.front.clang import compile_cuda
from evoengine.paths import find_task
from evoengine.task.load import load_task

# NVRTC 13.0 for sm_90 says of each how many bytes of local memory a thread has
IN_REGISTERS = {  # file: task, case
    "sdpa_register_resident": ("sdpa_h200", "mission"),  # arrays go to lambdas by reference
    "matmul_constant_order": ("matmul_fp16", "square"),  # loops without #pragma unroll
    "matmul_serial_split_k": ("matmul_fp16", "square"),
    "matmul_wmma_from_global": ("matmul_fp16", "square"),
}
IN_LOCAL_MEMORY = {
    "sdpa_thread_per_query": ("sdpa_h200", "mission", 512),
    "layernorm_row_in_local_memory": ("layernorm", "rows", 4000),
    "layernorm_local_array": ("layernorm", "rows", 1024),
}


def ptx_of(name: str, task: str, case: str) -> str:
    candidate = parsed(HONEST / f"{name}.cu")
    plan = bind(candidate, load_task(find_task(task)), case, limits_of_arch("sm_90"))
    kernels = sorted({launch.kernel for launch in plan.launches})
    return compile_cuda(
        candidate.code, name=f"{name}.cu", macros=plan.macros, arch="sm_89", kernels=kernels
    ).ptx


@pytest.mark.parametrize("name", IN_REGISTERS)
def test_an_array_that_nvrtc_keeps_in_registers_is_no_local_memory(name: str) -> None:
    ptx = ptx_of(name, *IN_REGISTERS[name])
    assert ".local" not in ptx
    assert "call" not in ptx


@pytest.mark.parametrize("name", IN_LOCAL_MEMORY)
def test_an_array_that_nvrtc_leaves_in_local_memory_stays_there(name: str) -> None:
    task, case, frame_bytes = IN_LOCAL_MEMORY[name]
    ptx = ptx_of(name, task, case)
    assert re.search(rf"__local_depot\d+\[{frame_bytes}\]", ptx)
    assert "st.local" in ptx


def test_a_function_that_must_not_be_inlined_is_called() -> None:
    source = """
    __device__ __noinline__ int twice(int x) { return x + clock(); }
    __global__ void f(int* p) { p[0] = twice(p[0]); p[1] = twice(p[1]); }
    """
    compiled = compile_cuda(source, name="f.cu", macros={}, arch="sm_89", kernels=["f"])
    assert compiled.ptx.count("call") >= 2
