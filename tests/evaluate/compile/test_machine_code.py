"""The formats that instructions use, read from machine code that NVRTC makes here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.evaluate.compile import machine_code
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit

Sums = tuple[str, int, int, int]  # C type of the sums, registers of D, A and B

PRELUDE = '#include <cuda_fp16.h>\nextern "C" __global__ void kernel('


def mma(modifiers: str, sums: Sums = ("float", 4, 4, 2)) -> str:
    """A kernel with one mma.sync."""
    kind, d, a, b = sums
    element = "double" if kind == "double" else "unsigned"
    letter = {"float": "f", "unsigned": "r", "double": "d"}
    places = [f"%{number}" for number in range(d + a + b)]
    registers = ["{" + ", ".join(part) + "}" for part in (places[:d], places[d : d + a])]
    registers.append("{" + ", ".join(places[d + a :]) + "}")
    sources = ", ".join(f'"{letter[element]}"(in[{number * 32}])' for number in range(a + b))
    results = ", ".join(f'"+{letter[kind]}"(out[{number * 32}])' for number in range(d))
    return (
        f"{PRELUDE}{kind}* out, const {element}* in) {{ out += threadIdx.x; in += threadIdx.x;"
        f' asm volatile("mma.sync.aligned.{modifiers} {", ".join(registers)}, {registers[0]};"'
        f" : {results} : {sources}); }}"
    )


def conversion(instruction: str, result: str = "h", source: str = "f", count: int = 2) -> str:
    types = {"h": "unsigned short", "f": "float", "r": "unsigned"}
    sources = ", ".join(f'"{source}"(in[{number * 32 + 1}])' for number in range(count))
    places = ", ".join(f"%{number}" for number in range(count + 1))
    return (
        f"{PRELUDE}{types[result]}* out, const {types[source]}* in) {{ {types[result]} value;"
        f' asm volatile("{instruction} {places};" : "={result}"(value) : {sources});'
        " out[threadIdx.x] = value; }"
    )


def wgmma(modifiers: str, flags: str) -> str:
    return (
        f"{PRELUDE}float* d, unsigned long long a, unsigned long long b) {{"
        ' asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.'
        f'{modifiers} {{%0, %1, %2, %3}}, %4, %5, 1, 1, 1{flags};"'
        ' : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b)); }'
    )


def tcgen05(kind: str) -> str:
    return (
        f"{PRELUDE}unsigned t, unsigned long long a, unsigned long long b, unsigned i) {{"
        ' asm volatile("{.reg .pred p; setp.ne.u32 p, 1, 0; tcgen05.mma.cta_group::1.kind::'
        f'{kind} [%0], %1, %2, %3, p;}}" :: "r"(t), "l"(a), "l"(b), "r"(i)); }}'
    )


ALL = ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"]
ON_8_BITS = ["sm_89", "sm_90", "sm_100", "sm_120"]
INTEGERS: Sums = ("unsigned", 4, 4, 2)
DOUBLES: Sums = ("double", 2, 1, 1)
KERNELS = {
    "plain": (ALL, PRELUDE + "float* x) { x[threadIdx.x] *= expf(x[0]); }", ()),
    "halves": (ALL, PRELUDE + "__half* x) { x[1] = __float2half(1.f) * x[0]; }", ()),
    "dp4a": (ALL, PRELUDE + "int* x) { x[0] = __dp4a(x[1], x[2], x[3]); }", ()),
    "f16": (ALL, mma("m16n8k16.row.col.f32.f16.f16.f32"), ("f16",)),
    "f16 sums": (ALL, mma("m16n8k16.row.col.f16.f16.f16.f16", ("unsigned", 2, 4, 2)), ("f16",)),
    "bf16": (ALL, mma("m16n8k16.row.col.f32.bf16.bf16.f32"), ("bf16",)),
    "tf32": (ALL, mma("m16n8k8.row.col.f32.tf32.tf32.f32"), ("tf32",)),
    "s8": (ALL, mma("m16n8k32.row.col.s32.s8.s8.s32", INTEGERS), ("int8",)),
    "u8 s8": (ALL, mma("m16n8k32.row.col.satfinite.s32.u8.s8.s32", INTEGERS), ("int8",)),
    "s4": (["sm_80", "sm_89"], mma("m16n8k64.row.col.s32.s4.s4.s32", INTEGERS), ()),
    "f64": (ALL, mma("m8n8k4.row.col.f64.f64.f64.f64", DOUBLES), ("fp64",)),
    "to e4m3": (ON_8_BITS, conversion("cvt.rn.satfinite.e4m3x2.f32"), ("e4m3",)),
    "relu to e4m3": (ON_8_BITS, conversion("cvt.rn.satfinite.relu.e4m3x2.f32"), ("e4m3",)),
    "to e5m2": (ON_8_BITS, conversion("cvt.rn.satfinite.e5m2x2.f32"), ("e5m2",)),
    "halves to e4m3": (
        ON_8_BITS,
        conversion("cvt.rn.satfinite.e4m3x2.f16x2", "h", "r", 1),
        ("e4m3",),
    ),
    "halves to e5m2": (
        ON_8_BITS,
        conversion("cvt.rn.satfinite.e5m2x2.f16x2", "h", "r", 1),
        ("e5m2",),
    ),
    "from e4m3": (ON_8_BITS, conversion("cvt.rn.f16x2.e4m3x2", "r", "h", 1), ("e4m3",)),
    "from e5m2": (ON_8_BITS, conversion("cvt.rn.f16x2.e5m2x2", "r", "h", 1), ("e5m2",)),
    "to f16": (ALL, conversion("cvt.rn.f16x2.f32", "r"), ()),
    "to bf16": (ALL, conversion("cvt.rn.bf16x2.f32", "r"), ()),
    "e4m3": (["sm_89", "sm_120"], mma("m16n8k32.row.col.f32.e4m3.e4m3.f32"), ("e4m3",)),
    "e5m2": (["sm_89", "sm_120"], mma("m16n8k32.row.col.f32.e5m2.e5m2.f32"), ("e5m2",)),
    "e4m3 e5m2": (
        ["sm_89", "sm_120"],
        mma("m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        ("e4m3", "e5m2"),
    ),
    # no such unit there: converted to half precision, multiplied as that
    "e4m3 in halves": (
        ["sm_90", "sm_100"],
        mma("m16n8k32.row.col.f32.e4m3.e4m3.f32"),
        ("e4m3", "f16"),
    ),
    "e2m3 e4m3": (
        ["sm_120a"],
        mma("m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e4m3.f32"),
        ("e4m3",),
    ),
    "e2m1 e3m2": (["sm_120a"], mma("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"), ()),
    "wgmma f16": (["sm_90a"], wgmma("m64n8k16.f32.f16.f16", ", 0, 0"), ("f16",)),
    "wgmma bf16": (["sm_90a"], wgmma("m64n8k16.f32.bf16.bf16", ", 0, 0"), ("bf16",)),
    "wgmma tf32": (["sm_90a"], wgmma("m64n8k8.f32.tf32.tf32", ""), ("tf32",)),
    "wgmma e4m3": (["sm_90a"], wgmma("m64n8k32.f32.e4m3.e4m3", ""), ("e4m3",)),
    "wgmma e5m2 e4m3": (["sm_90a"], wgmma("m64n8k32.f32.e5m2.e4m3", ""), ("e4m3", "e5m2")),
    "tcgen05 f16": (["sm_100a"], tcgen05("f16"), ("f16", "bf16", "tf32")),
    "tcgen05 f8f6f4": (["sm_100a"], tcgen05("f8f6f4"), ("e4m3", "e5m2")),
    "tcgen05 i8": (["sm_100a"], tcgen05("i8"), ("int8",)),
    "in a function": (
        ["sm_90"],
        (
            "__device__ __noinline__ unsigned unpacked(unsigned short x) { unsigned d;"
            ' asm volatile("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(x)); return d; }'
            'extern "C" __global__ void other(int* x) { asm volatile("" :: "r"(x[0])); }'
            + PRELUDE.replace("#include <cuda_fp16.h>\n", "")
            + "unsigned* out, unsigned short* in) { out[0] = unpacked(in[0]) + unpacked(in[1]); }"
        ),
        ("e4m3",),
    ),
}


def compiled(units: list[CompileUnit], folder: Path) -> list[CompileResult]:
    async def run() -> list[CompileResult]:
        pool = CompilePool(2, folder, pytest.fail)
        try:
            return await asyncio.gather(*map(pool.compile, units))
        finally:
            await pool.close()

    return asyncio.run(run())


def test_the_formats_of_every_instruction_are_found_on_every_architecture(tmp_path: Path) -> None:
    wanted = [
        (f"{name} on {arch}", expected, CompileUnit(code=code, arch=arch, kernels=("kernel",)))
        for name, (architectures, code, expected) in KERNELS.items()
        for arch in architectures
    ]
    results = compiled([unit for _, _, unit in wanted], tmp_path)
    for (name, expected, _), result in zip(wanted, results, strict=True):
        assert result.status == "ok", f"{name}: {result.log}"
        assert result.formats == {"kernel": expected}, name
        assert result.resources[0].formats == expected


def test_what_is_not_a_cubin_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a cubin"):
        machine_code.formats(b"\x7fELF", ["kernel"])
