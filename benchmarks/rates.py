"""Figures of the present GPU that the model of time works with: clocks of single instructions,
bandwidths, the cost of a launch.

    python -m benchmarks.rates FILE.json

Needs a CUDA device and CuPy; under a minute. rates.cu says what each kernel does. Clocks are those
of one block on one SM, a step; `stream` figures are 10^9 bytes a second of the whole device;
launches are microseconds from kernel to kernel in a CUDA graph.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import cupy
import numpy
import torch

from benchmarks.replay import Bench, median_us, present
from benchmarks.table import Row, machine, publish
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit

SOURCE = Path(__file__).with_name("rates.cu")
STEPS = {"chain": 128, "rate": 1024, "shared": 1024}  # as in rates.cu
THREADS = (32, 128, 256, 512, 1024)
# (divide, modulo, stride): which bytes the lanes of a warp touch
PATTERNS = {
    "in a row": (1, 32, 0),  # stride: the width of the access
    "one for all": (32, 1, 16),
    "one for each half": (16, 2, 16),
    "one for each quarter": (8, 4, 16),
    "one for neighbours": (2, 16, 16),
    "one for four neighbours": (4, 8, 16),
    "eight in turn": (1, 8, 16),
    "four in turn": (1, 4, 16),
    "rows of 144 bytes": (1, 32, 144),
    "rows of 128 bytes": (1, 32, 128),
}
WIDTHS = {"load4": 4, "load8": 8, "load16": 16, "store4": 4, "store16": 16, "matrix": 16}
# blocks, threads of a block, bytes of shared memory
LAUNCHES = (
    *(
        (1, 32, 0),
        (1, 1024, 0),
        (132, 128, 0),
        (132, 1024, 0),
        (512, 128, 0),
        (1024, 256, 0),
        (4096, 256, 0),
        (16384, 256, 0),
    ),
    *((132, 128, 100 << 10), (1024, 128, 100 << 10), (132, 128, 200 << 10), (528, 128, 200 << 10)),
)
# (name, pointers in the ring, how many further each step goes, whether L1 is passed by)
RINGS = (
    ("L1", 128, 1, 0),
    ("L2, one line", 128, 1, 1),
    ("L2", 1 << 17, 1009, 1),
    ("DRAM", 1 << 26, 524287, 1),
)
STREAMS = {"L2": (8, 16, 24, 32), "DRAM": (1024,)}  # MiB
REPLAYS = 15


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    device, limits = present()
    Bench(REPLAYS)  # the clock at its highest
    with tempfile.TemporaryDirectory() as folder:
        compiled = asyncio.run(_compiled(limits.arch, Path(folder)))
        if compiled.status != "ok":
            raise SystemExit(f"{SOURCE.name}: {compiled.status}: {compiled.log}")
        module = cupy.RawModule(path=compiled.code_path)
        kernels = {name: module.get_function(symbol) for name, symbol in compiled.functions.items()}
        rows = [
            row
            for figures in (_instructions, _shared, _rings, _streams, _launches)
            for row in figures(kernels)
        ]
    publish(
        machine(**device, command=f"python -m benchmarks.rates {options.file.name}"),
        rows,
        options.file,
    )


Kernels = dict[str, Callable[..., None]]


async def _compiled(arch: str, folder: Path) -> CompileResult:
    code = SOURCE.read_text(encoding="utf-8")
    kinds = {"CHAIN(": "chain_", "RATE(": "rate_", "SHARED(": "shared_"}
    lines = code.splitlines()
    made = [
        prefix + line[len(kind) :].split(",")[0]
        for line in lines
        for kind, prefix in kinds.items()
        if line.startswith(kind)
    ]
    names = (*made, "chain_mma", "chain_global", "rate_mma", "empty", "stream_read", "stream_write")
    pool = CompilePool(1, folder)
    try:
        return await pool.compile(
            CompileUnit(code=code, name=SOURCE.name, arch=arch, kernels=names)
        )
    finally:
        await pool.close()


def _clocks(kernel: Callable[..., None], threads: int, *more: object) -> int:
    clocks, sink = cupy.zeros(1, dtype=numpy.int64), cupy.zeros(1, dtype=numpy.uint32)
    for _ in range(2):  # the first run loads the code
        kernel((1,), (threads,), (clocks, sink, *more))
    return int(clocks.get()[0])


def _instructions(kernels: Kernels) -> Iterator[Row]:
    for name, kernel in kernels.items():
        kind = name.partition("_")[0]
        if kind in ("chain", "rate") and name != "chain_global":
            yield {
                "figure": name,
                **{
                    f"{threads} threads": _clocks(kernel, threads) / STEPS[kind]
                    for threads in THREADS
                },
            }


def _shared(kernels: Kernels) -> Iterator[Row]:
    """Clocks of one warp's instruction when 32 warps issue them: wavefronts."""
    for kind, width in WIDTHS.items():
        for name, (divide, modulo, stride) in PATTERNS.items():
            more = [numpy.int32(value) for value in (divide, modulo, stride or width)]
            yield {
                "figure": f"shared_{kind}: {name}",
                "clocks": _clocks(kernels[f"shared_{kind}"], 1024, *more) / STEPS["shared"] / 32,
            }


def _rings(kernels: Kernels) -> Iterator[Row]:
    for name, count, stride, bypass in RINGS:
        ring = (cupy.arange(count, dtype=numpy.int64) + 32 * stride) % count * 8
        ring += ring.data.ptr
        if name == "DRAM":
            cupy.zeros(1 << 28, dtype=numpy.uint8)  # the L2 cache forgets what it held
        clocks, sink = cupy.zeros(1, dtype=numpy.int64), cupy.zeros(1, dtype=numpy.uint32)
        kernels["chain_global"]((1,), (32,), (clocks, sink, ring, numpy.int32(bypass)))
        yield {
            "figure": f"chain_global: {name}",
            "32 threads": int(clocks.get()[0]) / STEPS["chain"],
        }


def _streams(kernels: Kernels) -> Iterator[Row]:
    stream = torch.cuda.current_stream()
    external = cupy.cuda.ExternalStream(stream.cuda_stream)
    blocks = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    for place, sizes in STREAMS.items():
        for mebibytes in sizes:
            buffer, sink = (
                cupy.zeros(mebibytes << 20, dtype=numpy.uint8),
                cupy.zeros(1, dtype=numpy.uint32),
            )
            count = numpy.uint64((mebibytes << 20) // 16)
            for name, arguments in (
                ("stream_read", (buffer, count, sink)),
                ("stream_write", (buffer, count)),
            ):

                def call(name: str = name, arguments: tuple[object, ...] = arguments) -> None:
                    with external:
                        kernels[name]((blocks,), (512,), arguments)

                us = median_us(call, REPLAYS)
                yield {
                    "figure": f"{name}: {place}, {mebibytes} MiB",
                    "GB/s": (mebibytes << 20) / us / 1000,
                    "us": us,
                }


def _launches(kernels: Kernels) -> Iterator[Row]:
    external = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
    kernels["empty"].max_dynamic_shared_size_bytes = max(shared for *_, shared in LAUNCHES)  # type: ignore[attr-defined]
    for blocks, threads, shared in LAUNCHES:

        def call(blocks: int = blocks, threads: int = threads, shared: int = shared) -> None:
            with external:
                kernels["empty"]((blocks,), (threads,), (), shared_mem=shared)

        yield {
            "figure": f"launch: {blocks} blocks of {threads} threads, {shared} bytes",
            "us": median_us(call, REPLAYS),
        }


if __name__ == "__main__":
    main()
