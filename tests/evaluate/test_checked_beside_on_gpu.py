"""Checked mode beside a real GPU."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.config import CHECKS
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.protocols import SearchBar
from evoengine.records import Status, Verdict
from evoengine.search.make_executor import make_executor
from evoengine.task.load import load_task
from tests.evaluate.test_checked_beside import CLEAN, MISSING, READS, WRITES, candidate, write_task

REFERENCE = "def reference(x):\n    return 2 * x\n"


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device")
def test_a_missing_barrier_that_a_gpu_does_not_show_is_a_fault_at_the_verification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang", reason="checked mode needs clang: evoengine[emulator]")
    monkeypatch.setenv("EVOENGINE_CACHE_DIR", str(tmp_path / "cache"))
    path = write_task(tmp_path, python=REFERENCE)

    async def judged() -> list[Verdict]:
        executor = make_executor(load_task(path), path, DeviceChoice(0), CHECKS)
        try:
            assert (await executor.start()).notices == ()
            return [
                await executor.evaluate(candidate(source), lambda _: None, verify, SearchBar())
                for source in (CLEAN, MISSING)
                for verify in (False, True)
            ]
        finally:
            await executor.close()

    *clean, first, verified = asyncio.run(judged())
    assert [verdict.status for verdict in (*clean, first)] == [Status.correct] * 3, clean[0].reason
    assert clean[1].checked_problem == ""
    assert all(check.checked is not None for check in clean[1].checks)
    assert verified.status is Status.fault
    assert f"at line {READS}" in verified.reason and f"at line {WRITES}" in verified.reason
