"""Kernel activity of real kernels, by CUPTI."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.worker.cuda.activity_measurement import median_sum
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.protocols import ActivityReport
from evoengine.records import Verdict
from evoengine.task.load import load_task
from tests.evaluate.worker.cuda.gpu_candidates import SPIN_US
from tests.evaluate.worker.cuda.gpu_lab import Lab

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


def test_a_kernel_that_spins_is_active_as_long_as_it_spins_in_every_profile(lab: Lab) -> None:
    examination = lab.examine("spins", "small")
    for count in (5, 2):  # the second profile of a process records as the first one
        profiled, wrong = examination.profile(lab.drawn(1 + count, "small"))
        assert (profiled.problem, wrong, len(profiled.calls)) == ("", (), count)
        assert 0.98 * SPIN_US < median_sum(profiled.calls) < 1.2 * SPIN_US


def test_a_baseline_with_the_candidates_code_is_active_as_long(lab: Lab) -> None:
    sets = lab.drawn(9, "large")
    ours, wrong = lab.examine("honest", "large").profile(sets)
    assert (ours.problem, wrong) == ("", ())
    twin = BaselineReplays(lab.harness, lab.functions, "scale.py:twin", "large", sets[0], 8)
    theirs = twin.profile(sets[1:])
    twin.close()
    assert [len(call) for call in theirs] == [1] * 8
    assert 0.8 < median_sum(ours.calls) / median_sum(theirs) < 1.25


def test_a_seed_kernel_is_active_for_less_than_a_replayed_call_takes() -> None:
    path = ROOT / "tasks" / "layernorm.yaml"
    seed = kernel_file.parse((ROOT / "seeds" / "layernorm.cu").read_text())

    async def run() -> tuple[Verdict, ActivityReport]:
        executor = LocalExecutor(load_task(path), str(path), CompilePool(2), cuda_device(0))
        try:
            await executor.start()
            verdict = await executor.evaluate(seed, lambda _: None)
            return verdict, await executor.activity(seed, lambda _: None)
        finally:
            await executor.close()

    verdict, found = asyncio.run(run())
    assert found.problem == ""
    assert [case.case for case in found.cases] == [timing.case for timing in verdict.timings]
    for case, timing in zip(found.cases, verdict.timings, strict=True):
        assert 0 < case.candidate_us < 1.1 * max(timing.hot.candidate_us) + 3.0
        assert 0 < case.baseline_us < 1.1 * max(timing.hot.baseline_us) + 3.0
        assert sum(item.us for item in case.candidate_launches) > 0
