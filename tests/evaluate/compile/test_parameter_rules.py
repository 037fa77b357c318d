"""Kernels read their parameters by name; every other way to that memory is refused."""

from __future__ import annotations

import time

import pytest

from benchmarks.corpora import CHEATS, cheats, parsed, task_path
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.evaluate.compile.compile_unit import Built, CompileUnit
from evoengine.evaluate.compile.headers import find_headers
from evoengine.evaluate.compile.nvrtc import NvrtcCompiler, load
from evoengine.evaluate.compile.parameter_rules import parameter_problem
from evoengine.task.load import load_task

ADDRESS = "kernel k takes the address of its parameter 1"
BEYOND = "kernel k reads beyond its parameter 1"
SPACE = "inline PTX uses the memory of parameters"
NO_PARAMETER = "as a parameter, which it is not"
# They find the driver's memory through the address of a parameter.
BY_ADDRESS = (
    "parameters_of_later_calls_sdpa.cu",
    "parameter_window_sdpa.cu",
    "parameters_rewritten_matmul.cu",
    "flush_disarmed_layernorm.cu",
    "statistics_in_driver_memory_layernorm.cu",
    "both_clocks_moved_sdpa.cu",
)
# one for each generation of NVRTC's code generator, which differ in what they write
ARCHITECTURES = ("sm_75", "sm_90", "sm_120")


@pytest.fixture(scope="module")
def compiler() -> NvrtcCompiler:
    loaded = load()
    return NvrtcCompiler(loaded, find_headers(loaded.version).folders)


def built(compiler: NvrtcCompiler, code: str, arch: str = "sm_90") -> Built:
    return compiler.compile(CompileUnit(code=code, arch=arch, kernels=("k",)))[0]


def with_assembly(text: str) -> str:
    """A kernel with two parameters and inline assembly, in which %0 is a register."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return (
        'extern "C" __global__ void k(unsigned long long* out, int n) { unsigned long long r = n;'
        f' asm volatile("{quoted}" : "+l"(r) :: "memory"); out[0] = r; }}'
    )


@pytest.mark.parametrize("name", BY_ADDRESS)
def test_a_cheat_that_takes_a_parameters_address_is_refused(
    name: str, compiler: NvrtcCompiler
) -> None:
    task, candidate = load_task(task_path(cheats()[name].task)), parsed(CHEATS / name)
    plan = bind(candidate, task, next(iter(task.all_cases)), limits_of_arch("sm_90"))
    kernel = plan.launches[0].kernel
    unit = CompileUnit(
        code=candidate.code, arch="sm_90", macros=plan.macros, kernels=(kernel,), timeout_s=60
    )
    found, code = compiler.compile(unit)
    assert (found.status, code) == ("refused", b"")
    assert found.log == (
        f"kernel {kernel} takes the address of its parameter 1, which is memory of the driver; read"
        " parameters by name"
    )


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mov.u64 %0, k_param_0;", ADDRESS),
        ("/* harmless */ mov.u64 %0, /* */ k_param_0;", ADDRESS),
        ('.pragma "nounroll\n/*"; mov.u64 %0, k_param_0; //*/', ADDRESS),
        ("\nld.param.u64 %0, [k_param_0]; mov.u64 %0, k_param_0;", ADDRESS),
        ("\nld.param.u64 %0, [k_param_0+8];", BEYOND),
        ("\nld.param.u64 %0, [k_param_0+4];", BEYOND),
        ("\nld.param.v2.u64 {_, %0}, [k_param_0];", BEYOND),
        ("\nld.param.u64 %0, [k_param_0+(4*1000)];", ADDRESS),
        ("\nld.param.u64 %0, [k_param_0+0x1000];", ADDRESS),
        ("\nld.param.u64 %0, [k_param_0+4+4];", ADDRESS),
        ("\nld.param.u64 %0, [k_param_0+-8];", ADDRESS),
        ("\nld.param.u64 %0, [%0];", NO_PARAMETER),
        ("\nld.param.u64 %0, [%0+8];", SPACE + "|" + NO_PARAMETER),
        ("ld .param .u64 %0, [%0];", SPACE),
        ("ld\n.param .u64 %0, [%0];", SPACE),
        ("cvta.param.u64 %0, %0;", SPACE),
        ("cvta.to.param.u64 %0, %0;", SPACE),
        ("{ .reg .pred p; isspacep.param p, %0; }", SPACE),
        # registers with the names of parameters
        (
            "{ .reg .u64 k_param_0; mov.u64 k_param_0, 800;\nld.param.u64 %0, [k_param_0];\n}",
            ADDRESS,
        ),
        (
            "{ .reg .u64 k_param_ //\n<3>;\nmov.u64 %0, 800;\nld.param.u64 %0, [k_param_0];\n}",
            "numbers registers from 'k_param_'",
        ),
        ("{ .reg .u64 a;\nmov.u64 a, 800;\nld.param.u64 %0, [a];\n}", NO_PARAMETER),
        (
            "{\n/*\n.param .b64 callparam;\n*/\n.reg .u64 a,\ncallparam;\nmov.u64 callparam, 800;"
            "\nld.param.u64 %0, [callparam];\n}",
            "the compiler's name 'callparam'",
        ),
        # declarations inside a comment
        ("/*\n.param .b8 k_param_0[4096];\n*/\nld.param.u64 %0, [k_param_0+4000];", ADDRESS),
        (
            "/*\n.visible .entry k(\n.param .align 8 .b8 k_param_0[4096]\n)\n*/\n"
            "ld.param.u64 %0, [k_param_0+4000];",
            ADDRESS,
        ),
    ],
)
def test_inline_assembly_that_reaches_parameters_is_refused(
    text: str, reason: str, arch: str, compiler: NvrtcCompiler
) -> None:
    found = built(compiler, with_assembly(text), arch)
    assert found.status == "refused", found.log
    assert any(words in found.log for words in reason.split("|")), found.log
    assert "\n" not in found.log


@pytest.mark.parametrize(
    ("code", "arch"),
    [
        (with_assembly(f"ld.const{text};"), arch)
        for text in (".u64 %0, [16]", "[0].u64 %0, [16]", "[0].u64 %0, [%0]")
        for arch in ARCHITECTURES
    ],
)
def test_the_assembler_refuses_constants_without_a_name_and_other_banks(
    code: str, arch: str, compiler: NvrtcCompiler
) -> None:
    assert built(compiler, code, arch).status == "compile_error"


STRUCT = "struct S { float v[8]; float* out; }; "


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    "code",
    [
        "__global__ void k() {}",
        "__global__ void k(const __grid_constant__ int n, float* out) { out[0] = n; }",
        STRUCT + "__global__ void k(S s) { s.out[threadIdx.x] = s.v[threadIdx.x & 7]; }",
        STRUCT + "__global__ void k(S s) { s.v[threadIdx.x & 7] = 1; s.out[0] = s.v[1]; }",
        STRUCT + "__noinline__ __device__ float f(S s, int i) { return s.v[i]; }"
        " __global__ void k(S s) { s.out[0] = f(s, threadIdx.x & 7); }",
        STRUCT + "__noinline__ __device__ float f(const S& s, int i) { return s.v[i]; }"
        " __global__ void k(S s) { s.out[0] = f(s, threadIdx.x & 7); }",
        STRUCT + "__noinline__ __device__ S f(float x) { S s; for (float& v : s.v) v = x; return s;"
        " } __global__ void k(float* x) { x[0] = f(x[1]).v[threadIdx.x & 7]; }",
        "__global__ void k(float* out, int n) { for (int* p = &n; *p > 0; --*p) out[*p] = 1; }",
        "__global__ void k(float4 a, double2 b, bool c, char d, float* out) {"
        " out[0] = a.x + a.w + b.y + c + d; }",
        "__device__ int f(int n) { return n < 2 ? 1 : f(n - 1) + f(n - 2); }"
        " __global__ void k(int* out, int n) { out[0] = f(n); }",
        "__device__ float f(float x) { return x + 1; } __device__ float g(float x) { return x * 2;}"
        " __global__ void k(float* x, int n) { float (*h[2])(float) = {f, g}; x[0] = h[n & 1](1);}",
        "template <class F> __noinline__ __device__ void run(F f) { f(threadIdx.x); }"
        " __global__ void k(float* out, int n) { run([&](int i) { out[i] = n; }); }",
        '__global__ void k(float* x) { printf("%f param_0 .param\\n", x[0]); assert(x[1] > 0); }',
        "__constant__ float table[4] = {1, 2, 3, 4}; __shared__ float param[32];"
        " __global__ void k(float* x) { param[threadIdx.x] = x[0]; __syncthreads();"
        " x[1] = param[3] + table[threadIdx.x & 3]; }",
        with_assembly("{ .reg .pred p; .reg .b32 t<4>; setp.lt.s32 p, 1, 2; mov.b32 t0, 3; }"),
        with_assembly("\nld.param.u64 %0, [k_param_0];"),
        "#include <cooperative_groups.h>\n__global__ void k(float* x) { x[0] = 1;"
        " cooperative_groups::this_grid().sync(); x[1] = x[0]; }",
    ],
)
def test_kernels_that_read_parameters_by_name_compile(
    code: str, arch: str, compiler: NvrtcCompiler
) -> None:
    found = built(compiler, code, arch)
    assert found.status == "ok", found.log


@pytest.mark.parametrize(
    "line",
    [
        "param" * 200_000,
        "call a,(\n" * 100_000,
        ".func f(.param .b8 param_0,\n" * 30_000,
        "{ .reg .b32 param0<4>; }\n.param .b32 param05;\n" * 20_000,
        "".join(f".reg .b32 param{n}<4>;\n\t.param .b32 param{n}1;\n" for n in range(20_000)),
        "\tld.param.u64 \t%rd1, [k_param_0+" + "9" * 1_000_000 + "];\n",
        ".param" + "\n" * 1_000_000,
    ],
    ids=["word", "calls", "headers", "registers", "prefixes", "digits", "lines"],
)
def test_a_hostile_text_takes_no_more_time_than_a_long_one(line: str) -> None:
    start = time.process_time()
    parameter_problem(line, {})
    assert time.process_time() - start < 5, "a text of that length takes hundredths of a second"
