"""Bringing up an executor: which compilers it needs, and what it says when it goes without one."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import DeviceError, EvoError, TaskError, ToolchainError, WorkerError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR, SCRIPTED_GPU
from evoengine.protocols import ActivityReport, ExecutorStart, Job, Purpose, Report
from evoengine.records import Environment, KernelActivity, Status, Verdict
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


class Profiling(Idle):
    """A device that answers a job with one report, or fails."""

    def __init__(self, answer: Report | EvoError) -> None:
        super().__init__(SCRIPTED_GPU)
        self.answer = answer
        self.jobs: list[Job] = []

    async def run(self, job: Job, *_: Any) -> Report:
        self.jobs.append(job)
        if isinstance(self.answer, EvoError):
            raise self.answer
        return self.answer


def activity(folder: Path, device: Profiling, source: str) -> ActivityReport:
    """Of a candidate, where the baseline of both shown cases is known."""

    async def measured() -> ActivityReport:
        baselines = {"small": "torch.mul", "large": "torch.mul"}
        task = load_scale_task(folder)
        executor = LocalExecutor(task, str(folder), CompilePool(1), device, baselines)
        try:
            await executor.start()
            return await executor.activity(kernel_file.parse(source), lambda _: None)
        finally:
            await executor.close()

    return asyncio.run(measured())


LARGE = KernelActivity(
    case="large", baseline="torch.mul", candidate_us=5.0, baseline_us=7.0, candidate_launches=()
)


def test_activity_is_measured_of_timed_cases_alone_and_hidden_ones_are_not_among_them(
    tmp_path: Path,
) -> None:
    device = Profiling(Report(status=Status.correct, activity=(LARGE,)))
    assert activity(tmp_path, device, kernel("scale_a")) == ActivityReport(cases=(LARGE,))
    (job,) = device.jobs
    assert job.purpose is Purpose.activity and [item.plan.case for item in job.cases] == [
        "small",
        "large",
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Report(status=Status.correct, activity_problem="no CUPTI"), "no CUPTI"),
        (Report(status=Status.timeout, reason="it hangs"), "timeout: it hangs"),
        (WorkerError("the grader is stuck"), "the grader is stuck"),
        (TaskError("torch.mul raised ValueError"), "torch.mul raised ValueError"),
    ],
    ids=["refused", "hangs", "worker", "task"],
)
def test_what_prevents_activity_is_told_and_ends_nothing(
    tmp_path: Path, answer: Report | EvoError, problem: str
) -> None:
    found = activity(tmp_path, Profiling(answer), kernel("scale_a"))
    assert found == ActivityReport(problem=problem)


def test_a_candidate_that_is_refused_is_not_run_under_a_profiler(tmp_path: Path) -> None:
    device = Profiling(Report(status=Status.correct))
    found = activity(tmp_path, device, kernel("scale_a", "fp64"))
    assert "fp64" in found.problem and device.jobs == []


def test_jobs_are_numbered_as_they_were_asked_for_and_not_as_they_were_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Profiling(Report(status=Status.timeout, reason="it hangs"))

    async def evaluated() -> list[int]:
        baselines = {"small": "torch.mul", "large": "torch.mul"}
        executor = LocalExecutor(
            load_scale_task(tmp_path), str(tmp_path), CompilePool(2), device, baselines
        )
        compile_candidate, second_is_judged = executor.compiler.compile, asyncio.Event()

        async def compiled(candidate: Candidate, *rest: Any) -> Any:
            found = await compile_candidate(candidate, *rest)
            if candidate.plan.name == "first":
                await second_is_judged.wait()
            return found

        monkeypatch.setattr(executor.compiler, "compile", compiled)
        try:
            await executor.start()
            first, second = (
                asyncio.create_task(
                    executor.evaluate(kernel_file.parse(kernel(name)), lambda _: None)
                )
                for name in ("first", "second")
            )
            await second
            second_is_judged.set()
            await first
        finally:
            await executor.close()
        return [job.number for job in device.jobs]

    assert asyncio.run(evaluated()) == [1, 0]
