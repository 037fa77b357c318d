"""The formats that instructions of PTX use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.evaluate.compile.pool import CLANG, CompilePool, CompileResult
from evoengine.evaluate.compile.ptx_formats import formats
from evoengine.paths import seeds_dir
from tests.evaluate.compile.test_seeds import plans, unit_of

ENTRY = ".visible .entry {name}(\n\t.param .u64 p\n)\n{{\n\t{body}\n\tret;\n}}\n"


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};", ("f16",)),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1};", ("bf16",)),
        ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%r1};", ("e4m3", "e5m2")),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.u8.s8.s32 {%r1};", ("int8",)),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1};", ("fp64",)),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1};", ("f16",)),
        ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {%f1};", ("tf32",)),
        ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1}, %rd1, %rd2;", ("e4m3",)),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %rd1, %rd2;", ("e4m3", "e5m2")),
        ("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", ("e4m3",)),
        ("cvt.rn.f16x2.e5m2x2 %r1, %rs1;", ("e5m2",)),
        ("cvt.rn.f16.f32 %rs1, %f1;", ()),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1];", ()),
        ("// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", ()),
    ],
)
def test_an_instruction_says_its_formats(instruction: str, expected: tuple[str, ...]) -> None:
    assert formats(ENTRY.format(name="k", body=instruction), ["k"]) == {"k": expected}


def test_each_kernel_has_its_own_formats_and_those_of_functions() -> None:
    ptx = (
        ".func (.param .b32 r) unpacked(.param .b32 p)\n{\n\tcvt.rn.f16x2.e4m3x2 %r1, %rs1;\n}\n"
        + ENTRY.format(name="first", body="wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {};")
        + ENTRY.format(name="second", body="add.f32 %f1, %f1, %f1;")
    )
    assert formats(ptx, ["first", "second"]) == {"first": ("e4m3", "f16"), "second": ("e4m3",)}


def test_the_seed_in_8_bits_uses_e4m3_as_clang_compiles_it(tmp_path: Path) -> None:
    code = (seeds_dir() / "sdpa_fp8.cu").read_text()

    async def run() -> CompileResult:
        pool = CompilePool(1, tmp_path, pytest.fail, module=CLANG)
        try:
            return await pool.compile(unit_of(code, plans("sdpa_fp8", "sm_89")[0], "sm_89"))
        finally:
            await pool.close()

    found = asyncio.run(run()).formats
    assert found["quantise"] == ("e4m3",)
    assert {name for names in found.values() for name in names} == {"e4m3", "f16"}
