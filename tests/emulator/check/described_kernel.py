"""What checked mode says of a kernel in CUDA."""

from __future__ import annotations

from evoengine.emulator.device import Checks, Emulator
from evoengine.emulator.front.clang import compile_cuda


def described(source: str, kernel: str, threads: int, shared_bytes: int = 0) -> list[str]:
    """The findings in one block of so many threads; `kernel` takes an array of a float for each."""
    compiled = compile_cuda(source, name="k.cu", macros={}, arch="sm_90", kernels=[kernel])
    emulator = Emulator(target="h200", threads=1)
    try:
        out = emulator.memory.allocate(4 * threads, "out")
        report = emulator.load(compiled.ptx).launch(
            compiled.functions[kernel],
            grid=(1, 1, 1),
            block=(threads, 1, 1),
            args=[out.to_bytes(8, "little")],
            shared_bytes=shared_bytes,
            checks=Checks(),
        )
    finally:
        emulator.close()
    return [report.describe(found) for found in report.findings]
