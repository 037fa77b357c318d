"""The table of external functions is what the headers declare."""

from __future__ import annotations

import re

from evoengine.emulator.front.clang import compile_cuda
from evoengine.emulator.front.externals import EXTERNALS
from tests.emulator.front import header_kernels

C_TYPES = {"float": "f32", "double": "f64", "int": "s32"}


def test_the_table_and_the_headers_declare_the_same() -> None:
    text = header_kernels.preprocessed("sm_89", ())
    declared = {
        name: (tuple(C_TYPES[kind.strip()] for kind in arguments.split(",")), C_TYPES[result])
        for result, name, arguments in re.findall(
            r'extern "C" __attribute__\(\([^()]*\)\) (\w+) (__ev_\w+)\(([^()]*)\);', text
        )
    }
    assert declared == {
        name: (external.arguments, external.result) for name, external in EXTERNALS.items()
    }


def test_ptx_declares_an_external_with_the_tables_types() -> None:
    source = (
        "__global__ void f(float* p, double* d) { p[0] = powf(p[1], p[2]); d[0] = ldexp(d[1], 3); }"
    )
    ptx = compile_cuda(source, name="kernel.cu", macros={}, arch="sm_89", kernels=["f"]).ptx
    assert re.search(
        r"\.extern \.func\s+\(\.param \.b32 func_retval0\) __ev_powf\s*\(\s*\.param \.b32"
        r" \w+,\s*\.param \.b32 \w+\s*\)",
        ptx,
    )
    assert re.search(
        r"\.extern \.func\s+\(\.param \.b64 func_retval0\) __ev_ldexp\s*\(\s*\.param \.b64"
        r" \w+,\s*\.param \.b32 \w+\s*\)",
        ptx,
    )


def test_everything_that_ptx_leaves_open_is_in_the_table_or_cudas_own() -> None:
    found = header_kernels.functions(header_kernels.preprocessed("sm_89", ()))
    ptx = compile_cuda(
        header_kernels.calls(found), name="kernel.cu", macros={}, arch="sm_89", kernels=[]
    ).ptx
    assert set(re.findall(r"\.extern \.func\s+(?:\(.*?\)\s*)?(\w+)", ptx)) == set(EXTERNALS)
