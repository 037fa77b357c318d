"""Source to PTX: kernels and their symbols, lines, errors, limits, finding the compiler."""

from __future__ import annotations

import os
import re
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import CompileFailed, CompilerMissing
from evoengine.emulator.front import clang, clang_process
from evoengine.emulator.front.clang import CompiledPtx, compile_cuda, find_clang
from tests.processes import still_alive


def built(source: str, *kernels: str, arch: str = "sm_89", **macros: str | int) -> CompiledPtx:
    return compile_cuda(source, name="kernel.cu", macros=macros, arch=arch, kernels=kernels)


def log_of(source: str, *kernels: str, **macros: str | int) -> str:
    with pytest.raises(CompileFailed, match=r".") as failed:
        built(source, *kernels, **macros)
    assert not failed.value.lacking, failed.value.log
    return failed.value.log


def test_a_template_is_instantiated_by_its_expression_and_found_by_its_symbol() -> None:
    source = "template <int N, bool C> __global__ void f(int* p) { *p = C ? N : -N; }"
    compiled = built(source, "f<D, causal>", "f<2 * D, 0>", D=64, causal=1)
    assert dict(compiled.functions) == {
        "f<D, causal>": "_Z1fILi64ELb1EEvPi",
        "f<2 * D, 0>": "_Z1fILi128ELb0EEvPi",
    }
    assert "__ev_kernel" not in compiled.ptx


@pytest.mark.parametrize(
    ("source", "kernel", "symbol"),
    [
        ('extern "C" __global__ void f(int* p) { *p = 1; }', "f", "f"),
        (
            "namespace n { template <class T> __global__ void f(T* p) { *p = 1; } }",
            "n::f<float>",
            "_ZN1n1fIfEEvPT_",
        ),
        ("static __global__ void f(int* p) { *p = 1; }", "f", "_ZL1fPi"),
        ("namespace { __global__ void f(int* p) { *p = 1; } }", "f", "_ZN12_GLOBAL__N_11fEPi"),
        ("__global__ void f(int* p) { *p = 1; } // a comment that goes on \\", "f", "_Z1fPi"),
        ("__global__ void f(int* p) { *p = 1; }\r\n", "f", "_Z1fPi"),
        (
            (
                "float twice(float x) { return 2 * x; } __global__ void f(float* p) { *p ="
                " twice(*p); }"
            ),
            "f",
            "_Z1fPf",
        ),
    ],
)
def test_kernels_of_every_linkage_are_found(source: str, kernel: str, symbol: str) -> None:
    assert built(source, kernel).functions[kernel] == symbol


def test_kernels_that_were_not_requested_are_compiled_as_well() -> None:
    assert (
        ".entry _Z1gPi("
        in built(
            "__global__ void f(int* p) { *p = 1; }\n__global__ void g(int* p) { *p = 2; }", "f"
        ).ptx
    )


def test_loc_gives_the_candidates_lines_and_inlined_intrinsics_count_for_their_caller() -> None:
    ptx = built(
        "\n\n__global__ void f(float* p) {\n    float x = p[1];\n    p[0] =\n       "
        " __expf(x);\n}\n",
        "f",
    ).ptx
    number = re.search(r'\.file\s+(\d+) "[^"]*" "kernel\.cu"', ptx)
    assert number
    lines = {int(line) for line in re.findall(rf"\.loc\s+{number[1]} (\d+) ", ptx)}
    assert {4, 5, 6} <= lines <= {3, 4, 5, 6, 7}
    before = ptx[: ptx.index("ex2.approx")]
    assert re.findall(r"\.loc\s+(\d+) (\d+) ", before)[-1] == (number[1], "6")


def test_no_path_of_this_machine_is_in_the_ptx() -> None:
    ptx = built(
        "#include <cuda_fp16.h>\n__global__ void f(half* p) { assert(p); *p = p[1] + p[2]; }", "f"
    ).ptx
    assert str(Path(clang.__file__).parent) not in ptx
    assert not re.search(r'"/(?!cuda/)', ptx)


@pytest.mark.parametrize(
    ("arch", "number"),
    [
        ("sm_75", 750),
        ("sm_80", 800),
        ("sm_86", 860),
        ("sm_89", 890),
        ("sm_90a", 900),
        ("sm_100", 1000),
    ],
)
def test_cuda_arch_is_that_of_the_target(arch: str, number: int) -> None:
    ptx = built("__global__ void f(int* p) { *p = __CUDA_ARCH__; }", "f", arch=arch).ptx
    assert f".target {arch}" in ptx
    assert re.search(rf"\b{int(arch.strip('sm_a')) * 10}\b", ptx)


def test_the_same_source_gives_the_same_ptx() -> None:
    source = (
        "#include <mma.h>\n__global__ void f(half* p) { __shared__ half s[9]; s[threadIdx.x] = *p;"
        " __syncthreads(); p[1] = s[2]; }"
    )
    assert built(source, "f") == built(source, "f")


def test_an_error_gives_the_candidates_line() -> None:
    log = log_of("\n\n__global__ void f(int* p) {\n    *p = nothing;\n}", "f", N=3)
    assert log == "kernel.cu:4:10: error: use of undeclared identifier 'nothing'"


def test_an_error_in_a_template_names_the_lines_that_lead_to_it() -> None:
    log = log_of(
        "template <int N> __global__ void f(int* p) {\n    static_assert(N % 8 == 0);\n}",
        "f<D>",
        D=3,
    )
    assert "kernel.cu:2:" in log
    assert "kernel expressions:1:" in log


def test_a_misspelt_intrinsic_is_the_candidates_error() -> None:
    assert "did you mean '__shfl_xor_sync'?" in log_of(
        "__global__ void f(int* p) { *p = __shfl_xor_snc(~0u, 1, 2); }"
    )


def test_an_absent_kernel_is_named_with_the_known_ones() -> None:
    source = (
        "template <int N> __global__ void __launch_bounds__(N * (2 + 2)) scan(int*) {}\n__global__"
        " void sum(int*) {}"
    )
    assert log_of(source, "scam<3>").startswith("kernel.cu: error: found no kernel scam<3> (")
    assert log_of(source, "scam<3>").endswith("; kernels here: scan, sum")


def test_a_device_function_is_not_a_kernel() -> None:
    log = log_of("__device__ int f() { return 1; }\n__global__ void g() {}", "f")
    assert log == "kernel.cu: error: f is not a __global__ function; kernels here: g"


def test_an_overloaded_kernel_is_refused_with_advice() -> None:
    assert "give the kernel a name of its own" in log_of(
        "__global__ void f(int*) {}\n__global__ void f(float*) {}", "f"
    )


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("/* open", "kernel.cu:1:1: error: unterminated /* comment"),
        ("\n#if 1", "kernel.cu:2:2: error: unterminated conditional directive"),
        ("__global__ void f() {", "error: expected '}'"),
        ('R"(', "raw string missing terminating delimiter"),
        ("\n\0", "kernel.cu:2: error: character '\\x00' is not allowed"),
        ("int x = \ud800;", "kernel.cu:1: error: character '\\ud800' is not allowed"),
    ],
)
def test_a_source_that_does_not_end_is_refused_where_it_begins(source: str, error: str) -> None:
    assert error in log_of(source, "f")


@pytest.mark.parametrize(
    "kernel", ["", "f; int x", "f<1>\n#include <a>", "f /*", "f // x", "f{}", "f\\"]
)
def test_an_expression_that_could_be_more_than_a_kernel_is_refused(kernel: str) -> None:
    with pytest.raises(ValueError, match=r"kernels: expected a kernel's name.*got"):
        built("__global__ void f() {}", kernel)


@pytest.mark.parametrize(
    "macro", [("1N", 1), ("N M", 1), ("N(x)", 1), ("N", "1\n#include <a>"), ("N", "1 \\"), ("", 1)]
)
def test_an_invalid_macro_is_refused(macro: tuple[str, str | int]) -> None:
    with pytest.raises(
        ValueError, match=r"macros: expected an identifier and a value on one line, got"
    ):
        compile_cuda("", name="kernel.cu", macros=dict([macro]), arch="sm_80", kernels=[])


def test_names_and_architectures_are_checked() -> None:
    with pytest.raises(ValueError, match=r"arch: expected sm_NN, got 'sm_89 -o x'"):
        built("", arch="sm_89 -o x")
    with pytest.raises(
        ValueError, match=r"name: expected a file's name without quotes.*got 'a\"b'"
    ):
        compile_cuda("", name='a"b', macros={}, arch="sm_80", kernels=[])


def test_a_compilation_that_does_not_end_is_ended() -> None:
    source = (
        "template <int N> struct A { static constexpr long v = A<N - 1>::v + A<N - 2>::v; };"
        + "".join(
            f"constexpr long f{i}(long n) {{ long s = 0; for (long i = 0; i < 900000; ++i) s += i %"
            f" 7; return s; }} static_assert(f{i}(1) > 0);"
            for i in range(60)
        )
    )
    with pytest.raises(CompileFailed, match=r"the compiler was stopped: no result within 0\.3 s"):
        compile_cuda(source, name="kernel.cu", macros={}, arch="sm_80", kernels=[], timeout_s=0.3)


def test_a_child_that_writes_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clang_process, "OUTPUT_BYTES", 1 << 20)
    assert (
        clang_process.run(
            ["/bin/sh", "-c", "while :; do echo 0123456789; done"], tmp_path, 30
        ).ended
        == "more than 1 MB of output"
    )
    assert (tmp_path / "stdout").stat().st_size == 1 << 20


def test_a_child_gets_no_more_memory_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clang_process, "MEMORY_BYTES", 512 << 20)
    result = clang_process.run(
        [sys.executable, "-c", "import time; time.sleep(0.2); bytearray(1 << 30)"], tmp_path, 30
    )
    assert result.code == 1
    assert "MemoryError" in result.stderr


def test_a_child_leaves_no_process_behind(tmp_path: Path) -> None:
    result = clang_process.run(["/bin/sh", "-c", "(while :; do :; done) & echo $!"], tmp_path, 2.0)
    assert not still_alive([int(result.stdout)])


def test_a_process_with_a_thousand_open_files_still_starts_children(tmp_path: Path) -> None:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed[1] < 1200:
        pytest.skip(f"this process may have no more than {allowed[1]} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(allowed[0], 1200), allowed[1]))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened[-1] < 1024:
            opened.append(os.dup(opened[0]))
        assert clang_process.run(["/bin/sh", "-c", "echo here"], tmp_path, 30).stdout == "here\n"
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)


def test_compilations_run_side_by_side_in_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(
                lambda n: built(f"__global__ void f{n}() {{}}", f"f{n}").functions[f"f{n}"],
                range(4),
            )
        )
    assert results == [f"_Z2f{n}v" for n in range(4)]


def test_the_clang_found_says_its_version() -> None:
    found = find_clang()
    assert int(found.version.split(".")[0]) >= clang.MIN_CLANG_MAJOR
    assert Path(found.command[0]).is_file()


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("clang version 11.0.1", "clang version 11.0.1, but 18 or later is needed"),
        ("gcc", "is not clang"),
    ],
)
def test_a_named_clang_that_cannot_be_used_is_not_replaced(
    says: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "clang"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o700)
    monkeypatch.setenv(clang.CLANG_VARIABLE, str(program))
    with pytest.raises(
        CompilerMissing,
        match=re.escape(f"tried EVOENGINE_CLANG={program}: {why}. To get one: pip install"),
    ):
        find_clang()


def test_a_named_clang_that_is_absent_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(clang.CLANG_VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(CompilerMissing, match=r"EVOENGINE_CLANG=.*nothing: not found"):
        find_clang()


def test_a_named_clang_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my-clang"
    program.write_text(f'#!/bin/sh\nexec {" ".join(find_clang().command)} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv(clang.CLANG_VARIABLE, str(program))
    assert find_clang().command == (str(program),)
    assert built("__global__ void f() {}", "f").functions == {"f": "_Z1fv"}


def test_a_machine_without_clang_gets_the_list_of_tried_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clang, "_wheel", lambda: ())
    with pytest.raises(
        CompilerMissing,
        match=(
            r"ziglang: not found; clang or clang-18\.\. on PATH: not found.*evoengine\[emulator\]"
        ),
    ):
        clang._find.__wrapped__("", "/nowhere")
