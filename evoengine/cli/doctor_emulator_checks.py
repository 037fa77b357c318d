"""The checks of `evoengine doctor` for the emulator: clang, the JIT, the processor, and whether it
can follow the candidates of the GPUs here.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
from collections.abc import Iterator
from pathlib import Path

from evoengine.errors import DeviceError, EvoError
from evoengine.evaluate.compile.compile_unit import Toolchain
from evoengine.evaluate.compile.pool import CLANG, toolchain
from evoengine.evaluate.cuda_driver import CudaDevices, cuda_facts
from evoengine.evaluate.device_choice import (
    INSTALL_EMULATOR,
    emulated_gpu,
    missing_for_emulator,
)
from evoengine.report.rows import DoctorFinding

NOT_FOLLOWED = "without it, a race that leaves every result right is not found on a GPU"
# the widest first
_EXTENSIONS = {
    "AVX-512": ("avx512f", "avx512bw", "avx512vl"),
    "AVX2": ("avx2",),
}


def check_beside(devices: CudaDevices, emulated: bool) -> Iterator[DoctorFinding]:
    """Whether checked mode can follow the candidates of the GPUs here; nothing without a GPU.

    `emulated`: whether the emulator lacks nothing.
    """
    if not devices.names:
        return
    problem = "" if emulated else "the emulator lacks what is named above"
    try:
        for ordinal in range(len(devices.names)):
            emulated_gpu(cuda_facts(ordinal).arch)
    except DeviceError as error:
        problem = problem or f"cuda:{ordinal}: {error}"
    if problem:
        yield DoctorFinding(name="checked mode", state="absent", found=problem, remedy=NOT_FOLLOWED)
        return
    found = "on the CPU, of what would take a place on a GPU"
    yield DoctorFinding(name="checked mode", state="ok", found=found)


def check_emulator(needed: bool) -> Iterator[DoctorFinding]:
    """Findings about the emulator; what it lacks is `missing` if the emulator is `needed` because
    there is no GPU, else `absent`.
    """
    found = _clang()
    if found.clang and not found.problem:
        confined = (
            "" if found.confined else "; not confined (it opens no file of this machine by itself)"
        )
        yield DoctorFinding(
            name="emulator: clang", state="ok", found=f"clang {found.clang}{confined}"
        )
    else:
        problem = (found.problem.strip() or "no error message").splitlines()[-1]
        yield _gap("emulator: clang", problem, needed)
    missing = missing_for_emulator()
    if missing:
        yield _gap("emulator: packages", f"{', '.join(missing)} not installed", needed)
    else:
        yield DoctorFinding(
            name="emulator: packages",
            state="ok",
            found=f"llvmlite {importlib.metadata.version('llvmlite')}",
        )
    yield DoctorFinding(name="emulator: processor", state="ok", found=_processor())


def _gap(name: str, found: str, needed: bool) -> DoctorFinding:
    return DoctorFinding(
        name=name,
        state="missing" if needed else "absent",
        found=found,
        remedy=f"to run kernels without a GPU, and for checked mode beside one: {INSTALL_EMULATOR}",
        exit_code=DeviceError.exit_code if needed else 0,
    )


def _clang() -> Toolchain:
    """The toolchain that a real compiler process finds, or why that process does not start."""
    try:
        return asyncio.run(toolchain(CLANG))
    except EvoError as error:
        return Toolchain(problem=str(error))


def _processor() -> str:
    cores = len(os.sched_getaffinity(0))
    flags = _flags()
    widest = next(
        (name for name, wanted in _EXTENSIONS.items() if flags.issuperset(wanted)),
        "neither AVX-512 nor AVX2: the emulator works, slowly",
    )
    return f"{cores} core{'' if cores == 1 else 's'}, {widest}"


def _flags() -> set[str]:
    """The processor's flags in /proc/cpuinfo."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return next(
        (set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set()
    )
