"""What models write without a thought must compile: the names that nvcc brings along, and the
host's headers.
"""

import pytest

from evoengine.evaluate.compile.compile_unit import Built, CompileUnit
from evoengine.evaluate.compile.headers import find_headers
from evoengine.evaluate.compile.includes import PRELUDE, SHIM, allowed_headers
from evoengine.evaluate.compile.nvrtc import NvrtcCompiler, load

BARE = r"""
constexpr float LARGE = INFINITY, NOTHING = NAN;
const float table[3] = {1, 2, -INFINITY};
static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }
constexpr int twice(int x) { return 2 * x; }
__global__ void k(float* p, uint32_t* u, int64_t n, size_t m, uintptr_t q, ptrdiff_t d) {
    p[0] = fmaxf(p[0], -INFINITY) + FLT_MAX + FLT_EPSILON + M_PI + table[n % 3] + LARGE + NOTHING + HUGE_VALF;
    u[1] = UINT32_MAX + INT_MAX + UINT_MAX + ceil_div(n, twice(3)) + INT64_MAX + DBL_MAX + CHAR_BIT + (NULL == p);
    assert(p[0] > 0);
    p[1] = std::max(std::abs(p[2]), std::min(p[3], 1.0f)) + std::sqrt(p[4]);
    printf("%f", p[0]);
}
"""

STANDARD = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <array>
#include <tuple>
template <typename T> struct Sum { static_assert(std::is_floating_point<T>::value, ""); };
__global__ void k(float* p, std::uint32_t* u, std::size_t n) {
    p[0] = std::max(p[0], -std::numeric_limits<float>::infinity()) + std::exp(p[1]) + std::isnan(p[2]);
    p[1] = std::abs(p[3]) + std::pow(p[4], 2.0f);
    int a = 1, b = std::numeric_limits<int>::max();
    std::swap(a, b);
    std::array<int, 3> list{};
    auto pair = std::make_tuple(1, 2.0f);
    u[1] = a + list[1] + std::get<0>(pair) + std::min(a, b) + std::clamp(a, 1, 3);
    std::memcpy(p + 8, u, 4);
    p[5] = std::move(p[6]) + std::numeric_limits<double>::epsilon() + std::sqrt(2.0);
    static_assert(std::is_same<uint64_t, unsigned long long>::value && !std::numeric_limits<unsigned>::is_signed, "");
    Sum<float> sum;
}
"""

DRIVER_TYPES = r"""
#include <cuda.h>
#include <cuda_runtime.h>
__global__ void k(const __grid_constant__ CUtensorMap map, float4* p, cudaTextureObject_t t) {
    p[0] = make_float4(1, 2, 3, reinterpret_cast<const int*>(&map)[0]);
}
"""

C_LIBRARY = r"""
#include <cstring>
#include <cuda/std/cstring>
template <typename E> struct alignas(16) Packed { E items[16 / sizeof(E)]; };
__global__ void k(float4* p, char* q, uint n, ushort m, ulong l, u_char c, ssize_t s) {
    Packed<float> pack;
    memcpy(&pack, p + n, sizeof pack);
    memset(q + m, c, n);
    memmove(q + 1, q, l + s);
    std::memmove(q, q + 2, 8);
    cuda::std::memmove(q, q + 3, 8);
    if (cuda::std::memcmp(p, q, 16)) std::memcpy(p, &pack, 16);
}
"""

OWN_DEFINITIONS = r"""
typedef unsigned int uint;
typedef unsigned char uchar;
__device__ void* memmove(void* to, const void* from, size_t bytes) { return to; }
__device__ void moved(void* to) { memmove(to, to, 4); }
typedef unsigned int uint32_t;
using uint8_t = unsigned char;
#define INFINITY __int_as_float(0x7f800000)
#define M_PI 3.14159f
__global__ void k(float* p, uint32_t n) { p[n] = INFINITY + M_PI; }
"""


@pytest.fixture(scope="module")
def compiler() -> NvrtcCompiler:
    loaded = load()
    return NvrtcCompiler(loaded, find_headers(loaded.version).folders)


def build(compiler: NvrtcCompiler, code: str, arch: str = "sm_89") -> Built:
    return compiler.compile(CompileUnit(code=code, arch=arch, kernels=("k",)))[0]


DEPENDENT_LAUNCHES = r"""
#include <cooperative_groups.h>
#include <cuda_runtime.h>
__global__ void k(float* p) {
    cudaGridDependencySynchronize();
    p[threadIdx.x] = 1;
    cudaTriggerProgrammaticLaunchCompletion();
}
"""

PLACEMENT_NEW = r"""
#include <new>
struct Pair { int a, b; __device__ Pair(int x) : a(x), b(x + 1) {} };
__global__ void k(int* p) {
    __shared__ alignas(Pair) char place[sizeof(Pair)];
    Pair* pair = new (place) Pair(p[0]);
    p[1] = pair->b;
}
"""

WIDE_INTEGERS = r"""
__device__ __noinline__ unsigned __int128 square(unsigned long long x) { return (unsigned __int128)x * x; }
__global__ void k(unsigned long long* p) { p[0] = square(p[1]) >> 64; }
"""


@pytest.mark.parametrize(
    "code",
    [
        BARE,
        STANDARD,
        DRIVER_TYPES,
        C_LIBRARY,
        OWN_DEFINITIONS,
        DEPENDENT_LAUNCHES,
        PLACEMENT_NEW,
        WIDE_INTEGERS,
    ],
    ids=["bare", "standard", "driver", "library", "own", "dependent", "placement", "wide"],
)
def test_what_models_write_compiles_without_a_word(code: str, compiler: NvrtcCompiler) -> None:
    built = build(compiler, code, "sm_90")
    assert (built.status, [line for line in built.log.splitlines() if "error" in line]) == (
        "ok",
        [],
    )


def test_what_the_c_library_does_not_have_is_not_defined(compiler: NvrtcCompiler) -> None:
    assert "uchar" in build(compiler, "__global__ void k(uchar* p) {}").log


@pytest.mark.parametrize(
    "header", sorted(name for name in allowed_headers() if not name.startswith("cuda/"))
)
def test_every_plain_header_compiles_alone(header: str, compiler: NvrtcCompiler) -> None:
    if not any((folder / header).is_file() for folder in (SHIM, *compiler.folders)):
        pytest.skip(f"this release has no {header}")
    built = build(compiler, f"#include <{header}>\n#include <{header}>\n__global__ void k() {{}}\n")
    assert (built.status, built.log) == ("ok", "")


@pytest.mark.parametrize(
    "header", ["cuda/std/cstdint", "cuda/std/limits", "cuda/barrier", "cuda/ptx"]
)
def test_libcudacxx_gets_along_with_the_shim(header: str, compiler: NvrtcCompiler) -> None:
    code = (
        f"#include <stdint.h>\n#include <cmath>\n#include <{header}>\n#include <limits>\n__global__"
        " void k(float* p) { *p = INFINITY; }\n"
    )
    assert build(compiler, code, "sm_90").status == "ok"


@pytest.mark.parametrize(
    "text", ["wgmma.fence.sync.aligned;", "setmaxnreg.dec.sync.aligned.u32 40;"]
)
def test_what_only_hopper_has_assembles_for_it(text: str, compiler: NvrtcCompiler) -> None:
    code = f'__global__ void __launch_bounds__(128) k() {{ asm volatile("{text}"); }}'
    found = {arch: build(compiler, code, arch).status for arch in ("sm_89", "sm_90")}
    assert found == {"sm_89": "compile_error", "sm_90": "ok"}


def test_the_shim_is_found_beside_the_code() -> None:
    assert SHIM.is_dir()
    assert (SHIM / PRELUDE).is_file()
    assert "stdint.h" in allowed_headers()
    assert PRELUDE not in allowed_headers()
