"""The executor of a run keeps times of baselines in the cache folder, and uses those that are there.

The compiler and the grader's process are real; the grader answers by a script.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.evaluate import device_choice
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.grader_device import GraderDevice
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.protocols import ExecutorStart
from evoengine.search.make_executor import make_executor
from evoengine.task.load import load_task
from tests.evaluate.device.test_contract import SCRIPTED, TASK


@pytest.fixture
def task_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.py").write_text("def forward(x):\n    return x * 2\n")
    (tmp_path / "scale.yaml").write_text(TASK)
    monkeypatch.setenv("EVOENGINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "scale.yaml"


def start(task_path: Path, baselines: dict[str, str] | None, anew: bool) -> ExecutorStart:
    async def started() -> ExecutorStart:
        executor = make_executor(
            load_task(task_path), task_path, DeviceChoice(0), (), baselines, anew
        )
        try:
            return await executor.start()
        finally:
            await executor.close()

    return asyncio.run(started())


def test_a_second_start_uses_the_cache_unless_it_is_to_measure(
    task_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path | None] = []

    def scripted_device(ordinal: int, code_folder: Path | None = None) -> GraderDevice:
        folders.append(code_folder)
        return GraderDevice(ForkServer(SCRIPTED), code_folder)

    monkeypatch.setattr(device_choice, "cuda_search_device", scripted_device)
    cache = task_path.parent / "cache"
    measured, kept, anew = (start(task_path, None, again) for again in (False, False, True))
    assert [found.baseline_us["small"]["torch"] for found in (measured, kept, anew)] == [1, 1, 2]
    assert [len(found.notices) for found in (measured, kept, anew)] == [0, 1, 0]
    assert len([*(cache / "baselines").iterdir()]) == 1
    assert folders == [cache / "baseline-code"] * 3
    resumed = start(task_path, {"small": "torch"}, False)
    assert (resumed.notices, resumed.baseline_us) == ((), {})


def test_an_emulator_keeps_no_baselines(task_path: Path) -> None:
    executor = make_executor(load_task(task_path), task_path, DeviceChoice(None, "l4"), ())
    assert isinstance(executor, LocalExecutor) and executor.stored is None
    asyncio.run(executor.close())
