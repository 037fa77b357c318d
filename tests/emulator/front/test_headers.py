"""The headers: each alone, all together, every function of theirs, on three architectures."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import CompileFailed
from evoengine.emulator.front import overlay
from evoengine.emulator.front.clang import compile_cuda
from tests.emulator.front import header_kernels

ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
HEADERS = [name for name in overlay.headers() if not name.startswith("ev/")]
ASSETS = Path(__file__).parent / "assets"
EMPTY = "__global__ void kernel(int* p) { *p = 1; }"


def ptx_of(
    source: str, arch: str = "sm_89", kernels: tuple[str, ...] = ("kernel",), **macros: int
) -> str:
    return compile_cuda(source, name="kernel.cu", macros=macros, arch=arch, kernels=kernels).ptx


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone_and_twice(header: str) -> None:
    assert ".entry" in ptx_of(f"#include <{header}>\n#include <{header}>\n{EMPTY}")


@pytest.mark.parametrize("arch", [*ARCHITECTURES, "sm_75", "sm_100"])
def test_all_headers_compile_together_and_leave_nothing_in_an_empty_kernel(arch: str) -> None:
    ptx = ptx_of("".join(f"#include <{header}>\n" for header in reversed(HEADERS)) + EMPTY, arch)
    assert len(ptx) < 2000
    assert f".target {arch}" in ptx


def test_macros_of_a_candidate_do_not_reach_into_headers() -> None:
    source = (
        "".join(f"#include <{header}>\n" for header in HEADERS)
        + "__global__ void kernel(int* p) { *p = M + N + K + D + a + x; }"
    )
    macros = dict.fromkeys("abcdefghijklmnoqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 7)
    ptx = compile_cuda(
        source, name="kernel.cu", macros=macros, arch="sm_89", kernels=["kernel"]
    ).ptx
    assert "42;" in ptx


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_function_of_the_interface_becomes_ptx(arch: str) -> None:
    headers = tuple(HEADERS)
    found = [
        function
        for function in header_kernels.functions(header_kernels.preprocessed(arch, headers))
        if "wmma" not in function.scope
    ]
    assert len(found) > 1100
    source = "".join(f"#include <{header}>\n" for header in headers) + header_kernels.calls(found)
    assert ptx_of(source, arch, kernels=()).count("\n.visible .entry") >= len(found)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_wmma_has_every_shape_type_and_layout(arch: str) -> None:
    shapes = ("16, 16, 16", "32, 8, 16", "8, 32, 16")
    types = (
        "__half, float",
        "__half, __half",
        "__nv_bfloat16, float",
        "signed char, int",
        "unsigned char, int",
    )
    layouts = ("wmma::row_major", "wmma::col_major")
    kernels = [
        f"product<{', '.join(parts)}>"
        for parts in itertools.product(shapes, types, layouts, layouts)
    ]
    ptx = ptx_of(
        (ASSETS / "wmma_and_groups.cu").read_text(), arch, (*kernels, "product_tf32", "groups")
    )
    for a, b in itertools.product(("row", "col"), repeat=2):
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16"):
            for types_of in (
                "f32.f32",
                "f16.f16",
                "f32.bf16.bf16.f32",
                "s32.s8.s8.s32",
                "s32.u8.u8.s32",
            ):
                assert f"wmma.mma.sync.aligned.{a}.{b}.{shape}.{types_of}" in ptx
    assert "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32" in ptx


@pytest.mark.parametrize(
    ("statement", "instruction"),
    [
        ("h2[0] = __hadd2(h2[1], h2[2]);", r"add\.(?:rn\.)?f16x2"),
        ("h2[0] = __hfma2(h2[1], h2[2], h2[3]);", r"fma\.rn\.f16x2"),
        ("h2[0] = h2[1] * h2[2] + h2[3];", r"fma\.rn\.f16x2"),
        ("h2[0] = __hadd2_rn(__hmul2_rn(h2[1], h2[2]), h2[3]);", r"mul\.rn\.f16x2"),
        ("h2[0] = h2exp2(h2[1]);", r"ex2\.approx\.f16x2"),
        ("h2[0] = __hmax2(h2[1], h2[2]);", r"max\.f16x2"),
        ("h2[0] = __hmin2_nan(h2[1], h2[2]);", r"min\.NaN\.f16x2"),
        ("h[0] = h[1] + h[2];", r"add\.(?:rn\.)?f16 "),
        ("b2[0] = __hfma2(b2[1], b2[2], b2[3]);", r"fma\.rn\.bf16x2"),
        ("b2[0] = b2[1] + b2[2];", r"fma\.rn\.bf16x2"),
        ("b[0] = b[1] * b[2];", r"fma\.rn\.bf16 "),
        ("f[0] = __fmul_rn(f[1], f[2]) + f[3];", r"mul\.rn\.f32"),
        ("f[0] = f[1] * f[2] + f[3];", r"fma\.rn\.f32"),
        ("f[0] = __expf(f[1]);", r"ex2\.approx\.f32"),
        ("f[0] = __fdividef(f[1], f[2]);", r"div\.approx\.f32"),
        ("f[0] = f[1] / f[2];", r"div\.rn\.f32"),
        ("f[0] = sqrtf(f[1]) + rsqrtf(f[2]);", r"sqrt\.rn\.f32"),
        ("f[0] = __ldg(f + 1);", r"ld\.global\.nc\.b32"),
        ("f[0] = __ldcg(f + 1);", r"ld\.global\.cg\.u32"),
        ("f[0] = expf(f[1]);", r"__ev_expf"),
        ("__shared__ int s[4]; atomicAdd(s, 1); f[0] = s[0];", r"(?:atom|red)\.shared\.add\.u32"),
        ("f[0] = max((unsigned)f[1], 3);", r"max\.u32"),
        ("e[0] = __nv_fp8_e4m3(f[0]);", r"cvt\.rn\.satfinite\.e4m3x2\.f32"),
        ("f[0] = (float)e[0];", r"cvt\.rn\.f16x2\.e4m3x2"),
        ('printf("%d", 1);', r"vprintf"),
        ("assert(f[0] > 0);", r"__assertfail"),
    ],
)
def test_a_function_becomes_its_instruction(statement: str, instruction: str) -> None:
    parameters = (
        "float* f, half* h, half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2, __nv_fp8_e4m3* e"
    )
    ptx = ptx_of(f"#include <cuda_fp8.h>\n__global__ void kernel({parameters}) {{ {statement} }}")
    assert re.search(instruction, ptx), ptx


def test_overloads_that_kernels_rely_on_are_not_ambiguous() -> None:
    ptx_of("""
        #include <cuda_fp16.h>
        #include <algorithm>
        #include <cmath>
        __device__ unsigned area(dim3 d) { return d.x * d.y; }
        __global__ void kernel(float* p, size_t n) {
            uint3 a = threadIdx; dim3 b = blockDim; dim3 c(blockIdx); auto d = threadIdx; const auto& e = blockIdx;
            p[0] = a.x + b.y + c.z + d.x + e.y + area(gridDim);
            p[1] = pow(2, p[1]) + std::pow(p[0], 2) + std::max(1.0f, p[2]) + max(threadIdx.x, 3) + abs(-2) + fmaxf(1, 2);
            p[2] = min(1.0f, 2.0) + min(n, (size_t)4) + std::min<int>(3, n) + fabs(p[3]) + floor(p[4]) + isnan(p[5]);
            __half x = 1.0f, y = 2; x += y; x = x * y - __half(3); if (x > y) p[3] = x; p[4] = expf(x); p[5] = (float)x + 1.0f;
            half2 z = {x, y}; z *= z; p[6] = __low2half(z) + __shfl_xor_sync(~0u, x, 1); int i = (int)x; p[7] = i;
            __shared__ half tile[4]; tile[0] = __float2half(p[8]); union { uint4 q; half h[8]; } u; u.q = *(uint4*)p; p[9] = u.h[3];
        }""")


def test_a_copy_of_a_known_size_is_loads_and_stores() -> None:
    copied = (
        "float4 v; memcpy(&v, f + threadIdx.x, 16); v.x += v.w; memcpy(g + 4 * threadIdx.x, &v,"
        " 16);"
    )
    ptx = ptx_of(f"__global__ void kernel(const float* f, float* g) {{ {copied} }}")
    assert (ptx.count("ld.global.b8"), ptx.count("st.global.b8")) == (16, 16)
    assert not re.search(r"\.local|\bcall\b|\bbra\b", ptx)
    packed = (
        "int4 b = f[threadIdx.x]; float v[4]; memcpy(v, &b, 16); v[0] += v[3]; memcpy(&b, v, 16);"
        " g[threadIdx.x] = b;"
    )
    ptx = ptx_of(f"__global__ void kernel(const int4* f, int4* g) {{ {packed} }}")
    assert ("ld.global.v4" in ptx, "st.global.v4" in ptx, ".local" in ptx) == (True, True, False)


def test_names_of_the_c_library_are_those_that_nvcc_has() -> None:
    ptx_of("__global__ void kernel(clock_t* a) { clock_t begin = clock(); *a = clock() - begin; }")
    ptx_of(
        "__global__ void kernel(uint* a, ushort* b, ulong* c, u_char* d, u_int32_t* e, ssize_t f) {"
        " *a = *b + *c + *d + *e + f; }"
    )
    ptx_of("""typedef unsigned int uint; typedef unsigned char uchar;
        __device__ void* memmove(void* to, const void* from, size_t bytes) { return to; }
        __global__ void kernel(uint* a, uchar* b) { *a = memmove(b, a, 4) == b; }""")
    with pytest.raises(CompileFailed, match="'uchar'"):
        ptx_of("__global__ void kernel(uchar* a) {}")
