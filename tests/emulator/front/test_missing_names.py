"""Names missing from our headers are distinguished from errors of a kernel."""

from __future__ import annotations

import pytest

from evoengine.emulator.emulator_errors import CompileFailed
from evoengine.emulator.front.clang import compile_cuda

VARIABLES = "global variables without __device__ or __constant__"


def failure(source: str) -> CompileFailed:
    with pytest.raises(CompileFailed, match=r".") as failed:
        compile_cuda(source, name="kernel.cu", macros={}, arch="sm_89", kernels=[])
    return failed.value


@pytest.mark.parametrize(
    ("source", "lacked"),
    [
        ("#include <cub/cub.cuh>", "<cub/cub.cuh>"),
        ("#include <cuda/barrier>", "<cuda/barrier>"),
        ("#include <curand_kernel.h>", "<curand_kernel.h>"),
        ("__global__ void f(float* p) { curandState s; }", "curandState"),
        ("__global__ void f(float* p) { *p = tex2D<float>(0, 1, 2); }", "tex2D"),
        ("__global__ void f(int* p) { __cluster_barrier_wait(); }", "__cluster_barrier_wait"),
        (
            (
                "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__global__"
                " void f() { auto g = cg::this_cluster(); }"
            ),
            "this_cluster",
        ),
        (
            (
                "#include <cooperative_groups.h>\n__global__ void f() {"
                " cooperative_groups::this_grid().sync(); }"
            ),
            "sync",
        ),
        ("#include <utility>\n__global__ void f() { std::vector<int> v; }", "vector"),
        (
            "int state;\n__global__ void f(int* p) { *p = state; }",
            f"{VARIABLES} (write it before state)",
        ),
    ],
)
def test_names_that_cuda_has_and_our_headers_lack_are_missing_names(
    source: str, lacked: str
) -> None:
    found = failure(source)
    assert found.lacking
    assert found.log.splitlines()[0] == f"the emulator's headers lack {lacked}"
    assert "kernel.cu:" in found.log.splitlines()[1]


def test_two_missing_names_are_listed_once_each() -> None:
    source = (
        "__global__ void f(float* p) { __nv_fp4_e2m1 a; __nv_fp4_e2m1 b; surf2Dread(p, 0, 0, 0); }"
    )
    assert (
        failure(source).log.splitlines()[0]
        == "the emulator's headers lack __nv_fp4_e2m1, surf2Dread"
    )


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void f(int* p) { *p = undefined; }",
        "__global__ void f(int* p) { *p = my_function(1); }",
        "__global__ void f(int* p) { *p = __shfl_xor_snc(~0u, 1, 2); }",
        "__global__ void f(half* p) {}",
        "__global__ void f(float* p) { *p = __half2float(p); }",
        "__global__ void f(int* p) { *p = std::numeric_limits<int>::max(); }",
        "__global__ void f(float* p) { nvcuda::wmma::fill_fragment(p, 0); }",
        '#include "my_kernels.h"',
        "#include <unistd.h>",
        '#include "/etc/passwd"',
        "__global__ void f(float* p) { float4 v; v.q = 1; }",
        "__global__ void f(int* p) { *p = __shfl_sync(1); }",
        "__global__ void f(int* p) { *p = 1 }",
    ],
)
def test_misspelt_and_not_included_names_are_the_kernels_error(source: str) -> None:
    assert not failure(source).lacking
