"""Kernel activity of both sides of a case, with the runner's loop in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evoengine.candidate.binding import BoundLaunch, CasePlan
from evoengine.evaluate.nvml import Nvml
from evoengine.evaluate.worker.backend import NoActivity
from evoengine.evaluate.worker.cuda.activity_measurement import (
    LEAST_CALLS,
    median_launches,
    median_sum,
    named,
)
from evoengine.evaluate.worker.cuda.cuda_backend import CudaBackend
from evoengine.evaluate.worker.cuda.gpu_monitor import GpuMonitor
from evoengine.evaluate.worker.judge import Judge
from evoengine.protocols import CompiledCase, Job, Purpose, Report
from evoengine.records import LaunchActivity, Status
from tests.evaluate.fake_pynvml import BUS_ID
from tests.evaluate.worker.cuda.host_device import (
    Behaviour,
    HostReplayer,
    connected_pair,
    host_bytes,
    install,
)
from tests.evaluate.worker.cuda.test_cuda_backend import ELEMENTS, Desk, honest


def launch(kernel: str) -> BoundLaunch:
    return BoundLaunch(kernel=kernel, grid=(1,), block=(32,), shared_bytes=0, args=())


def call(**times_us: float) -> tuple[LaunchActivity, ...]:
    return tuple(LaunchActivity(name=name, us=us) for name, us in times_us.items())


FILL = LaunchActivity(name="Memset (Device)", us=0.5)
RECORDED = (FILL, *call(_Z4rowsPf=3.0, _Z4sumsPf=1.5))


class Booth:
    """A judge whose backend measures activity on the host."""

    def __init__(self, folder: Path, runners: Any) -> None:
        self.desk = Desk(folder, runners)
        self.profiled: list[int] = []  # calls of the baseline in each profile
        self.baseline_problem = ""
        baselines: Any = SimpleNamespace(
            rough_us=lambda _case, _name: 40.0,
            replays=lambda _case, _name, _most: SimpleNamespace(profile=self.profile),
        )
        monitor = GpuMonitor(Nvml(self.desk.pynvml).gpu(BUS_ID))
        self.backend = CudaBackend(
            self.desk.task, self.desk.harness, self.desk.pool, baselines, monitor
        )
        self.backend.runners = runners
        self.steps: list[tuple[str, bool]] = []

    def profile(self, sets: Sequence[Any]) -> list[tuple[LaunchActivity, ...]]:
        assert self.desk.harness.token.is_held  # type: ignore[attr-defined]  # a HostToken
        if self.baseline_problem:
            raise NoActivity(self.baseline_problem)
        self.profiled.append(len(sets))
        return [call(gemm=4.0, add=3.0)] * len(sets)

    def report(self, behaviour: Behaviour) -> Report:
        """On a candidate of two kernels with a baseline in one of its two cases."""
        cases = []
        for name in ("plain", "flipped"):
            HostReplayer.behaviours[name] = behaviour
            launches = (launch("rows"), launch("sums<64>"))
            plan = CasePlan(case=name, hidden=False, macros={}, scratch={}, launches=launches)
            cases.append(CompiledCase(plan=plan, code_path=name, functions={}))
        job = Job(
            cases=tuple(cases), tier="fp32", baselines={"plain": "torch"}, purpose=Purpose.activity
        )
        announce = lambda step, may_run: self.steps.append((step, may_run))  # noqa: E731
        return Judge(self.desk.task, self.backend, announce).run(job)


@pytest.fixture
def booth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Booth]:
    install(monkeypatch)
    monkeypatch.setattr(HostReplayer, "recorded", RECORDED)
    with connected_pair(monkeypatch) as runners:
        yield Booth(tmp_path, runners)


def double(buffers: dict[str, int], _: int) -> None:
    honest(buffers, ELEMENTS["plain"])


def test_both_sides_have_ten_calls_and_kernels_have_the_plans_names(booth: Booth) -> None:
    report = booth.report(double)
    assert (report.status, report.activity_problem) == (Status.correct, "")
    (found,) = report.activity
    assert (found.case, found.baseline) == ("plain", "torch")
    assert (found.candidate_us, found.baseline_us) == (5.0, 7.0)
    assert [(item.name, item.us) for item in found.candidate_launches] == [
        ("Memset (Device)", 0.5),
        ("rows", 3.0),
        ("sums<64>", 1.5),
    ]
    for calls in (HostReplayer.calls_of_replays, booth.profiled):
        assert sum(calls) >= LEAST_CALLS and max(calls) > 1
    assert report.checks == report.timings == ()
    assert ("measuring kernel activity of plain", True) in booth.steps
    assert booth.steps[-1] == ("measuring kernel activity of torch", False)


def test_a_wrong_output_under_the_profiler_leaves_no_figure(booth: Booth) -> None:
    def idles(buffers: dict[str, int], number: int) -> None:
        if number != 1:
            double(buffers, number)

    report = booth.report(idles)
    assert (report.status, report.activity) == (Status.correct, ())
    assert report.activity_problem == "an output of a profiled call of plain was wrong"


def test_a_write_into_an_input_is_a_cheat_under_the_profiler_too(booth: Booth) -> None:
    def writes(buffers: dict[str, int], number: int) -> None:
        double(buffers, number)
        host_bytes(buffers["x"], 4).view(torch.float32)[0] += 1

    report = booth.report(writes)
    assert (report.status, report.activity) == (Status.cheat, ())


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_a_refused_profiler_on_either_side_is_a_note(
    booth: Booth, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if side == "candidate":
        monkeypatch.setattr(HostReplayer, "profile_problem", "CUPTI is not permitted")
    else:
        booth.baseline_problem = "CUPTI is not permitted"
    report = booth.report(double)
    assert (report.status, report.activity) == (Status.correct, ())
    assert report.activity_problem == "CUPTI is not permitted"


def test_records_of_other_launches_than_the_plans_are_refused() -> None:
    with pytest.raises(NoActivity, match="recorded 2 kernels of a call, expected 1"):
        named(RECORDED, ["rows"])
    with pytest.raises(NoActivity, match="other launches in one call than in another"):
        median_launches([call(rows=1.0), call(sums=1.0)])


def test_each_launch_and_the_sum_have_medians_of_their_own() -> None:
    calls = [call(rows=1.0, sums=9.0), call(rows=2.0, sums=2.0), call(rows=9.0, sums=1.0)]
    assert [item.us for item in median_launches(calls)] == [2.0, 2.0]
    assert median_sum(calls) == 10.0
