"""Bringing up an executor: which compilers it needs, and what it says when it goes without one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evoengine.errors import DeviceError, ToolchainError
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.local import LocalExecutor
from evoengine.records import Environment
from tests.report.scene import EMULATOR, ENVIRONMENT, the_task


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


def started(folder: Path, pool: type[CompilePool], front: type[CompilePool] | None, environment: Environment) -> LocalExecutor:
    executor = LocalExecutor(the_task(folder), "t.yaml", pool(1, folder), Idle(environment), front=front(1, folder) if front else None)

    async def run() -> None:
        try:
            await executor.start()
        finally:
            await executor.close()

    asyncio.run(run())
    return executor


def test_an_emulator_does_without_nvrtc_and_says_so(tmp_path: Path) -> None:
    executor = started(tmp_path, Lacking, There, EMULATOR)
    assert executor.builder.pool is None
    assert executor.notices == [
        "kernels are compiled by clang alone: nobody tells their registers and spills, and modelled times take occupancy from threads and "
        "shared memory alone, so they stand beside none of a run with NVRTC. no compiler: pip install it"
    ]


def test_an_emulator_asks_for_no_baselines(tmp_path: Path) -> None:
    assert started(tmp_path, There, There, EMULATOR).notices == []


def test_an_emulator_without_clang_is_no_device(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="the emulator has no compiler: no compiler: pip install it"):
        started(tmp_path, There, Lacking, EMULATOR)


def test_a_gpu_without_nvrtc_is_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="pip install it"):
        started(tmp_path, Lacking, None, ENVIRONMENT)
