"""Launches a case of the corpus on the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evoengine.emulator.device import Checks, Emulator
from evoengine.emulator.front.clang import compile_cuda
from tests.emulator.corpus import Case, In, InOut, Kernel, Out, initial, results

ARCH = 89  # of the L4, for which the corpus is compiled unless a case needs more


@dataclass(frozen=True)
class Launched:
    """The result of a launch."""

    results: dict[int, np.ndarray]  # index of an argument -> its bits after the launch
    report: Any  # evoengine.emulator's LaunchReport


def launch(
    emulator: Emulator, kernel: Kernel, case: Case, checks: Checks | None = None
) -> Launched:
    """Launches a case in a program of its own, so that __device__ variables are fresh; raises
    EmulatorError.
    """
    arch = f"sm_{max(ARCH, int(case.arch.removeprefix('sm_')))}"
    compiled = compile_cuda(
        kernel.source,
        name=f"{kernel.name}.cu",
        macros=case.macros,
        arch=arch,
        kernels=[case.kernel],
    )
    program = emulator.load(compiled.ptx)
    buffers = {
        index: _allocated(emulator, index, argument)
        for index, argument in enumerate(case.args)
        if isinstance(argument, In | InOut | Out)
    }
    try:
        args = [
            _bytes(argument, buffers[index][0] if index in buffers else 0)
            for index, argument in enumerate(case.args)
        ]
        report = program.launch(
            compiled.functions[case.kernel],
            grid=case.grid,
            block=case.block,
            args=args,
            shared_bytes=case.shared_bytes,
            checks=checks,
        )
        return Launched(
            {index: _copied(emulator, case, index, buffers[index][0]) for index in results(case)},
            report,
        )
    finally:
        for address, _ in buffers.values():
            emulator.memory.free(address)


def _allocated(emulator: Emulator, index: int, argument: In | InOut | Out) -> tuple[int, int]:
    """Address and length of a new buffer with the contents of the case."""
    bits = initial(argument).reshape(-1).view(np.uint8)
    address = emulator.memory.allocate(bits.size, name=f"argument {index}")
    emulator.memory.view(address, bits.size)[:] = bits
    return address, bits.size


def _bytes(argument: In | InOut | Out | np.generic, address: int) -> bytes:
    return argument.tobytes() if isinstance(argument, np.generic) else np.uint64(address).tobytes()


def _copied(emulator: Emulator, case: Case, index: int, address: int) -> np.ndarray:
    argument = case.args[index]
    assert isinstance(argument, InOut | Out)
    form = initial(argument)
    return emulator.memory.view(address, form.nbytes).copy().view(form.dtype).reshape(form.shape)
