"""Precompiled headers give the same PTX and the same messages as headers that are read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import CompileFailed
from evoengine.emulator.front import clang, precompiled, translation_unit
from evoengine.emulator.front.clang import compile_cuda

WMMA = Path(__file__).parent / "assets" / "styles" / "wmma_epilogue.cu"


def ready(source: str, arch: str = "sm_89") -> precompiled.PrecompiledHeaders:
    """The precompiled headers for a source that includes these; requested until they are
    available.
    """
    command = [*clang.find_clang().command, *clang.options(arch)]
    found = precompiled.find(command, translation_unit.headers(source)) or precompiled.find(
        command, translation_unit.headers(source)
    )
    assert found is not None
    return found


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompiled, "find", lambda command, headers: None)


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
def test_ptx_is_the_same_with_and_without(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = WMMA.read_text()
    ready(source, arch)
    fast = compile_cuda(
        source, name="a.cu", macros={"EXTRA": 7}, arch=arch, kernels=["wmma_epilogue"]
    )
    without(monkeypatch)
    assert (
        compile_cuda(source, name="a.cu", macros={"EXTRA": 7}, arch=arch, kernels=["wmma_epilogue"])
        == fast
    )


@pytest.mark.parametrize(
    "mistake",
    [
        "__global__ void f(float* p) { *p = nothing; }",
        "struct S { char c[3]; }; __global__ void f(S* p) { *p = __ldg(p); }",
        "__global__ void f(half* p) { *p = __hadd(1); }",
        "#error stop",
        '#include "stdx.h"',
    ],
)
def test_messages_are_the_same_with_and_without(
    mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"#include <cuda_fp16.h>\n{mistake}\n"
    ready(source)
    logs = []
    for _ in range(2):
        with pytest.raises(CompileFailed, match="error") as failed:
            compile_cuda(source, name="a.cu", macros={}, arch="sm_89", kernels=[])
        logs.append(failed.value.log)
        without(monkeypatch)
    assert logs[0] == logs[1]


def test_a_header_that_is_not_included_stays_unknown() -> None:
    ready("#include <cuda_fp16.h>\n")
    ready("")
    with pytest.raises(CompileFailed, match="half"):
        compile_cuda(
            "__global__ void f(half* p) { *p = 1; }",
            name="a.cu",
            macros={},
            arch="sm_89",
            kernels=[],
        )


def test_headers_are_precompiled_for_the_second_source_and_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = [*clang.find_clang().command, *clang.options("sm_86")]
    assert precompiled.find(command, ("cassert",)) is None
    made = precompiled.find(command, ("cassert",))
    assert made is not None
    assert precompiled.find(command, ("cassert",)) is made


def test_headers_that_clang_refuses_fail_with_the_source() -> None:
    command = [*clang.find_clang().command, *clang.options("sm_86"), "-Dcuda_fp16="]
    asked = ("no_such_header.h",)
    assert [precompiled.find(command, asked) for _ in range(2)] == [None, None]
