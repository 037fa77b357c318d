"""Counts of instructions in machine code that NVRTC makes here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.evaluate.compile import instruction_counts
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit
from evoengine.records import MachineCode
from tests.evaluate.compile.test_machine_code import mma, wgmma

KERNEL = 'extern "C" __global__ void kernel('
LOOPED = f"""{KERNEL}float* x, int n, int k) {{
    __shared__ float s[64];
    float sum = 0.f;
    for (int i = 0; i < n; ++i) {{
        s[threadIdx.x] = x[i * 64 + threadIdx.x];
        __syncthreads();
        sum += s[(i / k) & 63] / x[0];
    }}
    x[threadIdx.x] = sum;
}}"""
STRAIGHT = f"""{KERNEL}float4* x) {{
    float4 v = x[threadIdx.x];
    x[threadIdx.x] = make_float4(v.y, v.z, v.w, v.x + 1.f);
}}"""
INDEXED = f"""{KERNEL}int* x, int n) {{
    int a[32];
    for (int i = 0; i < n; ++i) a[x[i] & 31] = i;
    x[threadIdx.x] = a[n & 31];
}}"""
SWITCH = f"""{KERNEL}int* o, int n) {{
    switch (o[9]) {{
        case 0: o[1] = n * n; break;
        case 1: o[2] = o[n] / n; break;
        case 2: atomicAdd(o, n); break;
        case 3: o[n] = __popc(n); break;
        case 4: o[5] = 3; break;
        case 5: for (int i = 0; i < n; ++i) o[i] *= o[i + 1]; break;
        case 6: o[n] = o[7] + 6; break;
        case 7: o[n * 5] = 4; break;
        case 8: o[99] = n;
    }}
}}"""
COPIES = f"""{KERNEL}char* g) {{
    extern __shared__ char s[];
    unsigned a = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 64;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(a), "l"(g));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(a + 8), "l"(g + 8));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a + 16), "l"(g + 16));
}}"""
ARCHS = ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"]


def counts(tmp_path: Path, code: str, arch: str) -> MachineCode:
    async def compiled() -> CompileResult:
        pool = CompilePool(1, tmp_path, pytest.fail)
        try:
            return await pool.compile(CompileUnit(code=code, arch=arch, kernels=("kernel",)))
        finally:
            await pool.close()

    result = asyncio.run(compiled())
    assert (result.status, result.log) == ("ok", "")
    found = result.resources[0].machine_code
    assert found is not None
    return found


@pytest.mark.parametrize("arch", ARCHS)
def test_what_costs_time_in_a_loop_is_counted(arch: str, tmp_path: Path) -> None:
    found = counts(tmp_path, LOOPED, arch)
    assert found.loops_known
    assert found.loop_barriers >= 1
    assert found.loop_integer_divisions >= 1
    assert found.loop_float_divisions >= 1
    assert {(kind, size) for kind, size, _ in found.loop_accesses} >= {
        ("global load", 4),
        ("shared load", 4),
        ("shared store", 4),
    }
    assert not any(kind == "global store" for kind, _, _ in found.loop_accesses)
    assert sum(count for _, count in found.kinds) == found.instructions
    assert sum(count for _, count in found.loop_kinds) < found.instructions


@pytest.mark.parametrize("arch", ARCHS)
def test_a_kernel_without_a_loop_has_none_and_shows_its_widths(arch: str, tmp_path: Path) -> None:
    found = counts(tmp_path, STRAIGHT, arch)
    assert found.loops_known
    assert found.loop_kinds == found.loop_accesses == ()
    assert found.accesses == (("global load", 16, 1), ("global store", 16, 1))


def test_an_array_with_variable_indices_is_local_memory(tmp_path: Path) -> None:
    found = counts(tmp_path, INDEXED, "sm_90")
    assert any(kind == "local store" for kind, _, _ in found.loop_accesses)
    assert any(kind == "local load" for kind, _, _ in found.accesses)


def test_loops_are_not_known_where_a_branch_has_its_target_in_a_register(tmp_path: Path) -> None:
    found = counts(tmp_path, SWITCH, "sm_90")
    assert not found.loops_known
    assert found.loop_kinds == ()


@pytest.mark.parametrize("arch", ARCHS)
def test_asynchronous_copies_have_their_widths(arch: str, tmp_path: Path) -> None:
    copies = [item for item in counts(tmp_path, COPIES, arch).accesses if item[0][0] == "a"]
    assert copies == [("asynchronous copy", size, 1) for size in (4, 8, 16)]


@pytest.mark.parametrize(
    ("arch", "code", "shape"),
    [
        ("sm_80", mma("m16n8k16.row.col.f32.f16.f16.f32"), "mma m16n8k16"),
        ("sm_120", mma("m16n8k8.row.col.f32.tf32.tf32.f32"), "mma m16n8k8"),
        ("sm_89", mma("m16n8k32.row.col.f32.e4m3.e4m3.f32"), "fp8 mma m16n8k32"),
        ("sm_90", mma("m8n8k4.row.col.f64.f64.f64.f64", ("double", 2, 1, 1)), "fp64 mma m8n8k4"),
        ("sm_90", wgmma("m64n8k16.f32.f16.f16", ", 0, 0"), "wgmma m64n8k16"),
        ("sm_90", wgmma("m64n8k8.f32.tf32.tf32", ""), "wgmma m64n8k8"),
    ],
)
def test_tensor_instructions_have_their_shape(
    arch: str, code: str, shape: str, tmp_path: Path
) -> None:
    assert counts(tmp_path, code, arch).tensor_shapes == ((shape, 1),)


def test_a_cubin_that_breaks_off_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a cubin"):
        instruction_counts.counted(b"\x7fELF\x02\x01", ["kernel"], "sm_90")
