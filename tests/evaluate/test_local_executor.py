"""Bringing up an executor: which compilers it needs, and what it says when it goes without one."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import DeviceError, ToolchainError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR, SCRIPTED_GPU
from evoengine.protocols import ExecutorStart
from evoengine.records import Environment, Status, Verdict
from tests.scale_task import kernel, load_scale_task


class Lacking(CompilePool):
    """A pool on a machine without its compiler."""

    async def start(self) -> str:
        raise ToolchainError("no compiler: pip install it")


class There(CompilePool):
    """A pool whose compiler is never asked."""

    async def start(self) -> str:
        return "22.1"

    async def warm(self) -> None: ...


class Idle:
    """A device that is asked for nothing but what it is."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    async def start(self, task: Any, task_path: str) -> Environment:
        return self.environment

    async def run(self, *_: Any) -> Any:
        raise AssertionError("baselines were asked for")

    async def close(self) -> None: ...


def started(
    folder: Path,
    nvrtc: type[CompilePool],
    clang: type[CompilePool] | None,
    environment: Environment,
) -> tuple[LocalExecutor, ExecutorStart]:
    executor = LocalExecutor(
        load_scale_task(folder),
        "t.yaml",
        nvrtc(1, folder),
        Idle(environment),
        clang=clang(1, folder) if clang else None,
    )

    async def run() -> ExecutorStart:
        try:
            return await executor.start()
        finally:
            await executor.close()

    return executor, asyncio.run(run())


def test_an_emulator_works_without_nvrtc_and_says_so(tmp_path: Path) -> None:
    executor, start = started(tmp_path, Lacking, There, SCRIPTED_EMULATOR)
    assert executor.compiler.nvrtc is None
    assert start.notices == (
        "kernels are compiled by clang alone: their registers and spills are unknown, so modelled"
        " times take occupancy from threads and shared memory alone and cannot be compared with"
        " those of a run with NVRTC. no compiler: pip install it",
    )


def test_an_emulator_asks_for_no_baselines(tmp_path: Path) -> None:
    _, start = started(tmp_path, There, There, SCRIPTED_EMULATOR)
    assert (start.notices, start.baselines, start.baseline_us) == ((), {}, {})


def test_an_emulator_without_clang_is_a_device_error(tmp_path: Path) -> None:
    with pytest.raises(
        DeviceError, match="the emulator has no compiler: no compiler: pip install it"
    ):
        started(tmp_path, There, Lacking, SCRIPTED_EMULATOR)


def test_a_gpu_without_nvrtc_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="pip install it"):
        started(tmp_path, Lacking, None, SCRIPTED_GPU)


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/somewhere/compile.cu", "compile.cu"),
        ("trial 7", "kernel.cu"),
        ("scale_a.cu", "scale_a.cu"),
    ],
)
@pytest.mark.parametrize("emulated", [False, True])
def test_a_compile_error_names_the_file_that_the_user_gave_or_that_of_a_trial(
    tmp_path: Path, file: str, shown: str, emulated: bool
) -> None:
    source = kernel("scale_a").replace("{ y[0]", "{ bug; y[0]")

    async def judged() -> Verdict:
        nvrtc = There(1) if emulated else CompilePool(1)
        clang = CompilePool(1, module=CLANG) if emulated else None
        executor = LocalExecutor(
            load_scale_task(tmp_path),
            str(tmp_path),
            nvrtc,
            Idle(SCRIPTED_EMULATOR if emulated else SCRIPTED_GPU),
            {"large": "x"},
            clang,
        )
        if emulated:
            executor.compiler.nvrtc = None  # clang alone is asked, as where NVRTC is not there
        try:
            await executor.start()
            return await executor.evaluate(kernel_file.parse(source, file), lambda _: None)
        finally:
            await executor.close()

    found = asyncio.run(judged())
    assert found.status is Status.compile_error
    line = source[: source.index("bug")].count("\n") + 1
    assert re.match(rf"{re.escape(shown)}(\({line}\)|:{line}:\d+): error: ", found.reason), (
        found.reason
    )
    assert shown in found.detail and (
        shown == "scale_a.cu" or "scale_a.cu" not in found.reason + found.detail
    )
