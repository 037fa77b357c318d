"""What machine code demands beyond its kernels, read from what NVRTC makes."""

from __future__ import annotations

import pytest

from evoengine.evaluate.compile import cubin
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.evaluate.compile.cubin_demands import CubinDemands, demands_of
from evoengine.evaluate.compile.headers import find_headers
from evoengine.evaluate.compile.includes import allowed_headers
from evoengine.evaluate.compile.nvrtc import NvrtcCompiler, load
from evoengine.evaluate.cubin_rules import MAX_LASTING_BYTES
from tests.evaluate.compile.kernels import VARIED, VARIED_KERNELS
from tests.evaluate.compile.test_cubin import raw

ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
NOTHING = CubinDemands((), (), (), 0, 0)
# Ends the kernel inside of inline assembly, declares `lines` at the top level of the PTX, and
# begins another kernel, whose body is `body`.
INJECTED = (
    "__global__ void k(int* a) {{ a[0] = 1; asm volatile("
    '"ret;\\n}}\\n{lines}\\n.visible .entry other(.param .u64 p)\\n{{ .reg .b64 %rd<4>; {body}"'
    "); }}"
)


@pytest.fixture(scope="module")
def compiler() -> NvrtcCompiler:
    loaded = load()
    return NvrtcCompiler(loaded, find_headers(loaded.version).folders)


def demands(
    compiler: NvrtcCompiler, code: str, arch: str = "sm_90", kernels: tuple[str, ...] = ("k",)
) -> CubinDemands:
    return demands_of(cubin.completed(raw(compiler, code, kernels, arch)[0]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("code", "symbols"),
    [
        ("__global__ void k(float* a) { a[0] = 1; }", ()),
        ('__global__ void k(float* a) { printf("%f", a[0]); }', ("vprintf",)),
        (
            "#include <cassert>\n__global__ void k(float* a) { assert(a[0] > 1); }",
            ("__assertfail",),
        ),
        (
            "__global__ void k(double* a) { a[0] = sin(a[1]) + pow(a[2], a[3]) + tgamma(a[4])"
            " + fmod(a[1], a[2]) / a[3] + sqrt(a[2]); }",
            (),
        ),
        (
            "#include <cooperative_groups.h>\n__global__ void k(float* a) { a[0] = 1;"
            " cooperative_groups::this_grid().sync(); a[1] = a[0]; }",
            (),
        ),
        ("__global__ void k(long long* a) { __nanosleep(9); a[0] = clock64() % a[1]; }", ()),
        (
            "struct A { virtual ~A() {} virtual int f() { return 1; } };"
            " struct B : A { int f() override { return 2; } };"
            " __global__ void k(int* a) { A x; B y; A* z = a[0] ? &x : &y; a[1] = z->f(); }",
            (),
        ),
    ],
    ids=["plain", "printf", "assert", "math", "grid", "clock", "virtual destructor"],
)
def test_honest_code_needs_nothing_but_printf_and_assert_from_outside(
    compiler: NvrtcCompiler, code: str, symbols: tuple[str, ...], arch: str
) -> None:
    data = cubin.completed(raw(compiler, code, ("k",), arch)[0])
    assert demands_of(data).external_symbols == ()
    assert all(name.encode() in data for name in symbols)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("code", "symbols"),
    [
        ("__global__ void k(void** a) { a[0] = malloc(64); }", {"malloc"}),
        ("__global__ void k(void** a) { free(a[0]); }", {"free"}),
        ("__global__ void k(int** a) { a[0] = new int[64]; delete[] a[1]; }", {"malloc", "free"}),
        (
            "struct alignas(256) S { int a[64]; }; __global__ void k(S** a) { a[0] = new S; }",
            {"__cuda_syscall_aligned_malloc"},
        ),
        (
            'extern "C" __device__ void* __nv_aligned_device_malloc(size_t, size_t);'
            "__global__ void k(void** a) { a[0] = __nv_aligned_device_malloc(64, 256); }",
            {"__cuda_syscall_aligned_malloc"},
        ),
        (
            INJECTED.format(
                lines=".extern .func (.param .b64 r) __cuda_syscall_cdp_malloc(.param .b64 n);",
                body=(
                    ".param .b64 x; .param .b64 y; call (x), __cuda_syscall_cdp_malloc, (y);"
                    " ld.param.b64 %rd1, [x]; st.global.b64 [%rd1], %rd1;"
                ),
            ),
            {"__cuda_syscall_cdp_malloc"},
        ),
        (
            INJECTED.format(lines=".global .texref tr;\\n.global .surfref sr;", body=""),
            {"tr", "sr"},
        ),
    ],
    ids=["malloc", "free", "new", "aligned new", "aligned malloc", "system call", "texture"],
)
def test_every_symbol_from_elsewhere_is_named(
    compiler: NvrtcCompiler, code: str, symbols: set[str], arch: str
) -> None:
    assert set(demands(compiler, code, arch).external_symbols) == symbols


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("code", "lasting"),
    [
        ("__device__ int g[10] = {1};", 40),
        ("__device__ int g[10];", 40),
        ("static __device__ int g[10];", 40),
        ("__constant__ int g[10];", 40),
        ("static __constant__ int g[10];", 40),
        ("extern __device__ int g[10];", 40),
        ("__device__ int f[3]; __constant__ int g[10];", 52),
    ],
)
def test_variables_and_constants_of_every_kind_outlive_a_launch(
    compiler: NvrtcCompiler, code: str, lasting: int, arch: str
) -> None:
    code += "__global__ void k(int* a) { a[0] = g[a[1]]; }"
    if "f[3]" in code:
        code = code.replace("g[a[1]]", "g[a[1]] + ++f[a[2]]")
    assert demands(compiler, code, arch).lasting_bytes == lasting


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variables_of_inline_assembly_and_of_functions_count(
    compiler: NvrtcCompiler, arch: str
) -> None:
    hidden = INJECTED.format(lines=".global .b8 book[100000];\\n.weak .global .b8 w[10];", body="")
    assert demands(compiler, hidden, arch).lasting_bytes == 100010
    local = "__global__ void k(int* a) { static int calls; a[0] = atomicAdd(&calls, 1); }"
    assert demands(compiler, local, arch).lasting_bytes == 4
    shared = "__shared__ int s[99]; __global__ void k(int* a) { s[a[1]] = 2; a[0] = s[a[2]]; }"
    assert demands(compiler, shared, arch) == NOTHING


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variables_that_the_driver_cannot_find_are_named(
    compiler: NvrtcCompiler, arch: str
) -> None:
    """Those that inline PTX declares inside of a function; string literals are none of them."""
    code = (
        "template <int K> __device__ int of_template = K; namespace { __device__ int nameless; }"
        "__global__ void k(int* a) { static int calls; a[0] = ++calls + of_template<3> + nameless;"
        ' %s printf("%%d\\n", a[0]); printf("%%d times\\n", a[1]); a[1] = __func__[a[2]]; }'
    )
    inline = (
        'asm volatile("{ .global .u32 kept; .reg .u32 r; ld.global.u32 r, [kept];'
        ' add.u32 r, r, 1; st.global.u32 [kept], r; }" ::: "memory");'
    )
    assert demands(compiler, code % "", arch).scoped_variables == ()
    (name,) = demands(compiler, code % inline, arch).scoped_variables
    assert "kept" in name


def test_managed_variables_are_found(compiler: NvrtcCompiler) -> None:
    code = "__managed__ int m[5]; __device__ int n; __global__ void k(int* a) { a[0] = m[n]; }"
    assert demands(compiler, code).managed_variables == ("m",)


def test_what_allowed_headers_declare_is_far_from_the_limit(compiler: NvrtcCompiler) -> None:
    """One kernel with every header that this CUDA release has."""
    found = [name for name in sorted(allowed_headers()) if _is_there(compiler, name)]
    assert len(found) > 60
    code = "".join(f"#include <{name}>\n" for name in found) + "__global__ void k() {}"
    needs = demands(compiler, code)
    assert needs.external_symbols == needs.managed_variables == ()
    assert needs.lasting_bytes < MAX_LASTING_BYTES // 4


def _is_there(compiler: NvrtcCompiler, name: str) -> bool:
    return any((folder / name).is_file() for folder in compiler.folders)


FRAME = "float t[300]; for (int i = 0; i < 300; ++i) t[i] = a[i + n];"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_stack_counts_callees_and_kernels_that_no_launch_uses(
    compiler: NvrtcCompiler, arch: str
) -> None:
    assert 400 <= demands(compiler, VARIED, arch, VARIED_KERNELS).stack_bytes < 4096
    code = (
        f"__device__ __noinline__ float f(float* a, int n) {{ {FRAME} return t[n % 300]; }}"
        "typedef float (*F)(float*, int); __device__ F table[2] = {f, f};"
        "__global__ void k(float* a) { a[0] = 1; }"
        'extern "C" __global__ void unused(float* a, int n) { a[0] = table[n](a, n); }'
    )
    assert demands(compiler, code, arch, ("k", "unused")).stack_bytes >= 1200


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_function_that_calls_itself_counts_as_64_calls(
    compiler: NvrtcCompiler, arch: str
) -> None:
    code = (
        f"__device__ __noinline__ float f(float* a, int n) {{ {FRAME}"
        " float r = n < 2 ? 0 : f(a, n - 1) * f(a, n - 2);"
        " return t[int(r) % 300] + t[n % 300] * r; }"
        "__global__ void k(float* a, int n) { a[0] = f(a, n); }"
    )
    built, _ = compiler.compile(CompileUnit(code=code, arch=arch, kernels=("k",)))
    assert built.resources[0].local_bytes >= 64 * 1200
