"""Changed kernels are launched one after another, whatever one of them does."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.errors import WorkerError
from evoengine.evaluate.case_follower import CaseFollower
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.repair.change_judge import ChangeJudge, Doubt
from evoengine.evaluate.repair.change_order import header_end, kernel_code
from evoengine.evaluate.repair.change_queue import ChangeQueue, LaunchedChanges
from evoengine.evaluate.repair.changed_launches import (
    LAUNCH_S,
    ChangedLaunches,
    _next_count,
    is_as_wrong,
)
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.plan_changes import PlanChanges, is_of_plan
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.repair_job import (
    ChangeCompiler,
    CompiledChanges,
    changed_candidate,
)
from evoengine.evaluate.repair.repair_search import RepairSearch
from evoengine.evaluate.repair.repair_walk import MOST_REFUTED
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import switched
from evoengine.evaluate.repair.switched_source import SELECT
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs
from evoengine.protocols import Device, Job, Progress, Report
from evoengine.records import CaseCheck, Status
from evoengine.task.load import load_task
from tests.evaluate.kept_fork_server import kept
from tests.evaluate.repair.test_change_effects import check
from tests.evaluate.worker.emulated.judging import REFERENCE, SIZES, TASK

KERNEL = """/* evoengine
name: triple
precision: exact
launches:
  - kernel: triple
    grid: [4]
    block: [64]
    args: [x, out, N]
*/
extern "C" __global__ void triple(const int* x, int* out, int N) {
    for (int i = blockIdx.x * 64 + threadIdx.x; i < N; i += 256) {
        out[i] = 3 * x[i];
    }
}
"""
# text that the kernel has once, what takes its place, whether it is right then
CHANGES = [
    ("i += 256", "256", "0", False),  # never ends
    ("out[i]", "i", "i * 1000003", False),  # writes anywhere
    ("3 * x", "3", "2", True),
    ("3 * x[i]", "3 * x[i]", "x[i] + x[i]", True),
    ("blockIdx.x * 64", "blockIdx.x", "0", False),
]


def changes() -> list[SourceChange]:
    found = []
    for around, old, new, _ in CHANGES:
        assert KERNEL.count(around) == 1, around
        start = KERNEL.index(around) + around.index(old)
        found.append(SourceChange(start, start + len(old), new, "by hand"))
    return found


class DeadAfterVerification:
    """A device whose processes cannot be started any more after the first whole verdict."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._is_dead = False

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        if self._is_dead:
            raise WorkerError("the worker is gone")
        self._is_dead = verify
        return await self._device.run(job, progress, verify)


class SlowMachineCode:
    """A device on which the first launch of a code takes longer than one launch may."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._ready: set[str] = set()

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        is_short = job.launch_s is not None and job.launch_s <= LAUNCH_S
        if job.candidate not in self._ready and is_short:
            reason = "checking small, change 1 took longer than 16 s"
            return Report(status=Status.timeout, reason=reason)
        self._ready.add(job.candidate)
        return await self._device.run(job, progress, verify)


class OtherAlone:
    """A device on which the kernel compiled alone is more wrong than among alternatives."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.altered = 0
        self._tries_changes = False

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        report = await self._device.run(job, progress, verify)
        self._tries_changes |= bool(job.candidate)
        if self._tries_changes:
            return report
        self.altered += 1
        more_wrong = [
            check.model_copy(
                update={
                    "sets": tuple(
                        item.model_copy(update={"rel_rmse": 2 * item.rel_rmse})
                        for item in check.sets
                    )
                }
            )
            for check in report.checks
        ]
        return report.model_copy(update={"checks": tuple(more_wrong)})


async def started(folder: Path, cases: str = "{small: {N: 65536}}") -> LocalExecutor:
    (folder / "reference.py").write_text(REFERENCE)
    path = folder / "double.yaml"
    text = TASK.replace("NAME", "double").replace("SIZE", SIZES["double"])
    path.write_text(text.replace("{small: {N: 65536}}", cases))
    executor = LocalExecutor(
        load_task(path),
        str(path),
        CompilePool(1),
        kept().device("l4"),
        clang=CompilePool(1, module=CLANG),
    )
    await executor.start()
    return executor


def search_beside(executor: LocalExecutor, gpu: Device, emulator: Device) -> RepairSearch:
    """A search whose changes are tried on an emulator beside a GPU."""
    judge, beside = (Workbench(executor.compiler, device) for device in (gpu, emulator))
    return RepairSearch(judge, limits_of_arch("sm_89"), [beside])


def found_on(device: type, folder: Path) -> tuple[FoundRepairs, list[str]]:
    """What a search on such a device finds for the kernel, and what it says meanwhile."""
    said: list[str] = []

    async def run() -> FoundRepairs:
        executor = await started(folder)
        try:
            limits = limits_of_arch("sm_89")
            search = RepairSearch(Workbench(executor.compiler, device(executor.device)), limits)
            wrong = WrongInputs("small", 0)
            return await search.find(kernel_file.parse(KERNEL), wrong, 60.0, said.append)
        finally:
            await executor.close()

    return kept().run(run()), said


@pytest.mark.timeout(120)
def test_what_was_found_stays_found_when_a_process_fails_later(tmp_path: Path) -> None:
    found, said = found_on(DeadAfterVerification, tmp_path)
    assert [change.new for change in found.changes] == ["2"]
    assert "note: the search for further changes was given up: the worker is gone" in said


class Noted:
    """A device that notes what it is asked for; it breaks after so many jobs."""

    def __init__(self, device: Device, jobs: int = 1000) -> None:
        self._device = device
        self._most = jobs
        self.jobs: list[Job] = []

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        self.jobs.append(job)
        if len(self.jobs) > self._most:
            raise WorkerError("no emulator")
        return await self._device.run(job, progress, verify)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("jobs", [1000, 1, 0])
def test_beside_a_gpu_an_emulator_tries_the_changes_as_long_as_it_works_and_the_gpu_judges(
    tmp_path: Path, jobs: int
) -> None:
    async def run() -> tuple[list[str], list[Job], list[Job]]:
        executor = await started(tmp_path)
        gpu, emulator = Noted(executor.device), Noted(executor.device, jobs)
        try:
            search = search_beside(executor, gpu, emulator)
            wrong = WrongInputs("small", 0)
            found = await search.find(kernel_file.parse(KERNEL), wrong, 60.0, lambda _: None)
            return [change.new for change in found.changes], gpu.jobs, emulator.jobs
        finally:
            await executor.close()

    new, on_gpu, on_emulator = kept().run(run())
    assert "2" in new
    tried, whole = [[job.only_set is not None for job in jobs] for jobs in (on_emulator, on_gpu)]
    assert all(tried) and not all(whole)
    assert any(whole) == (jobs < 1000) and len(tried) == (len(tried) if jobs == 1000 else jobs + 1)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("problem", ["", "no memory"])
def test_several_emulators_share_the_changes_and_one_that_fails_leaves_the_rest_to_the_others(
    tmp_path: Path, problem: str
) -> None:
    said: list[str] = []

    async def run() -> tuple[list[str], list[Noted]]:
        executor = await started(tmp_path)
        second = kept().device("l4")
        emulators = [Noted(executor.device), Noted(second)]
        limits = limits_of_arch("sm_89")
        follower = CaseFollower(
            executor.task, executor.task_path, executor.compiler, limits, second, 60.0
        )

        async def broken() -> None:
            raise WorkerError(problem)

        try:
            judge, one, other = (
                Workbench(executor.compiler, device) for device in (executor.device, *emulators)
            )
            start = broken if problem else follower.start
            search = RepairSearch(judge, limits, [one, replace(other, start=start)])
            found = await search.find(
                kernel_file.parse(KERNEL), WrongInputs("small", 0), 60.0, said.append
            )
            return [change.new for change in found.changes], emulators
        finally:
            await second.close()
            await executor.close()

    new, emulators = kept().run(run())
    assert "2" in new
    assert emulators[0].jobs
    assert bool(emulators[1].jobs) is not bool(problem)
    assert any(problem in note for note in said if note.startswith("note: ")) is bool(problem)


@pytest.mark.timeout(120)
def test_a_kernel_that_does_otherwise_where_loops_are_not_unrolled_is_searched_all_the_same(
    tmp_path: Path,
) -> None:
    async def run() -> tuple[FoundRepairs, int]:
        executor = await started(tmp_path)
        emulator = OtherAlone(executor.device)
        try:
            search = search_beside(executor, executor.device, emulator)
            wrong = WrongInputs("small", 0)
            found = await search.find(kernel_file.parse(KERNEL), wrong, 60.0, lambda _: None)
            return found, emulator.altered
        finally:
            await executor.close()

    found, altered = kept().run(run())
    assert altered == 1
    assert "2" in [change.new for change in found.changes]
    assert found.compilations < 20  # of some 250 changes


@pytest.mark.timeout(240)
def test_beside_a_gpu_changes_after_a_fault_are_followed_on_the_emulator(tmp_path: Path) -> None:
    """What is out of bounds there ends a process on a GPU."""
    faulty = kernel_file.parse(KERNEL.replace("3 * x", "2 * x").replace("i < N", "i <= N"))
    wrong = WrongInputs("small", 0, is_fault=True, has_outputs=False)

    async def run() -> tuple[FoundRepairs, list[Job], list[Job]]:
        executor = await started(tmp_path)
        gpu, emulator = Noted(executor.device), Noted(executor.device)
        try:
            search = search_beside(executor, gpu, emulator)
            found = await search.find(
                faulty, wrong, 60.0, lambda _: None, ["out of bounds: thread 0 at line 11"]
            )
            return found, gpu.jobs, emulator.jobs
        finally:
            await executor.close()

    found, on_gpu, on_emulator = kept().run(run())
    assert "<" in [change.new for change in found.changes], found
    assert all(job.checked and job.only_set is not None for job in on_emulator)
    assert on_gpu and all(job.only_set is None for job in on_gpu), "the GPU judges them whole"


class Flaky(Noted):
    """An emulator that finds no fault in the first launch of a change."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._launched: set[tuple[str, object]] = set()

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        report = await super().run(job, progress, verify)
        checks = []
        for found, case in zip(report.checks, job.cases, strict=False):
            first = case.plan.launches[0]
            key = job.candidate, first.args
            if first.kernel == SELECT and first.args[0].scalar and key not in self._launched:
                found = found.model_copy(update={"ok": True, "checked": None})
            self._launched.add(key)
            checks.append(found)
        return report.model_copy(update={"checks": tuple(checks)})


class Unchecked(Noted):
    """A GPU, on which no access is followed: all that is launched there is right."""

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        await super().run(job, progress, verify)
        return Report(status=Status.correct)


@pytest.mark.timeout(240)
def test_after_a_fault_a_change_must_be_right_each_time(tmp_path: Path) -> None:
    faulty = kernel_file.parse(KERNEL.replace("3 * x", "2 * x").replace("i < N", "i <= N"))
    as_faulty = kernel_file.parse(faulty.source.replace("2 * x[i]", "x[i] * 2"))
    wrong = WrongInputs("small", 0, is_fault=True, has_outputs=False)

    async def run() -> list[str]:
        executor = await started(tmp_path)
        told = ["out of bounds: thread 0 at line 11"]
        devices = Unchecked(executor.device), Flaky(executor.device)
        judge, beside = (Workbench(executor.compiler, device) for device in devices)
        try:
            search = RepairSearch(judge, limits_of_arch("sm_89"), [beside], likes=[as_faulty])
            found = await search.find(faulty, wrong, 20.0, lambda _: None, told)
            mended = [changed_candidate(faulty, change) for change in found.changes]
            verdicts = [await executor.evaluate(item, lambda _: None) for item in mended]
            return [verdict.status.value for verdict in verdicts]
        finally:
            await executor.close()

    assert set(kept().run(run())) == {"correct"}


@pytest.mark.timeout(240)
def test_after_a_fault_a_change_is_followed_on_each_small_case(tmp_path: Path) -> None:
    """The GPU sees no fault, and of the smallest case the like kernel has none either."""
    faulty = kernel_file.parse(KERNEL.replace("3 * x", "2 * x").replace("i < N", "i <= N"))
    like = kernel_file.parse(faulty.source.replace("i <= N", "i < N + (N > 64)"))
    wrong = WrongInputs("large", 0, is_fault=True, has_outputs=False)

    async def run() -> tuple[FoundRepairs, list[str]]:
        executor = await started(tmp_path, "{small: {N: 64}, middle: {N: 128}, large: {N: 4096}}")
        try:
            search = search_beside(executor, Unchecked(executor.device), executor.device)
            search.likes = [like]
            told = ["out of bounds: thread 0 at line 11"]
            found = await search.find(faulty, wrong, 60.0, lambda _: None, told)
            mended = [changed_candidate(faulty, change) for change in found.changes]
            verdicts = [await executor.evaluate(item, lambda _: None) for item in mended]
            return found, [verdict.status.value for verdict in verdicts]
        finally:
            await executor.close()

    found, statuses = kept().run(run())
    assert set(statuses) == {"correct"}
    assert found.refuted


# Wrong in another way where there are few elements: no change of one of the lines mends both.
WRONG_TWICE = KERNEL.replace(
    "out[i] = 3 * x[i];", "if (N < 64) out[i] = 3 * x[i];\n        else out[i] = 5 * x[i];"
)


@pytest.mark.timeout(120)
def test_a_larger_case_is_taken_when_changes_that_are_right_on_a_small_one_are_wrong_elsewhere(
    tmp_path: Path,
) -> None:
    texts = ("3 * x[i]", "5 * x[i]")
    likes = [kernel_file.parse(WRONG_TWICE.replace(text, "2 * x[i]")) for text in texts]
    likes += [kernel_file.parse(WRONG_TWICE.replace(text, "x[i] + x[i]")) for text in texts]

    async def run() -> tuple[FoundRepairs, list[Job]]:
        executor = await started(tmp_path, "{small: {N: 32}, large: {N: 4096}}")
        device = Noted(executor.device)
        try:
            bench = Workbench(executor.compiler, device)
            search = RepairSearch(bench, limits_of_arch("sm_89"), [bench], likes=likes)
            wrong = WrongInputs("large", 0)
            found = await search.find(kernel_file.parse(WRONG_TWICE), wrong, 8.0, lambda _: None)
            return found, device.jobs
        finally:
            await executor.close()

    found, jobs = kept().run(run())
    assert found.refuted >= MOST_REFUTED
    tried = [job.cases[0].plan.case for job in jobs[1:] if job.only_set is not None]
    assert tried[0] == "small"
    assert any(case.startswith("large") for case in tried), tried


@pytest.mark.timeout(120)
def test_when_time_is_up_what_was_found_is_enough(tmp_path: Path) -> None:
    """Each whole verdict takes seconds, and several changes may be right on the wrong inputs."""
    texts = ("2 * x[i]", "x[i] + x[i]")
    likes = [kernel_file.parse(KERNEL.replace("3 * x[i]", text)) for text in texts]
    now = 0.0

    class Slow(Noted):
        async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
            nonlocal now
            report = await super().run(job, progress, verify)
            now += 100.0 * verify
            return report

    async def run() -> tuple[FoundRepairs, list[Job]]:
        executor = await started(tmp_path)
        device = Slow(executor.device)
        try:
            bench = Workbench(executor.compiler, device)
            search = RepairSearch(bench, limits_of_arch("sm_89"), (), lambda: now, likes)
            wrong = WrongInputs("small", 0)
            found = await search.find(kernel_file.parse(KERNEL), wrong, 60.0, lambda _: None)
            return found, device.jobs
        finally:
            await executor.close()

    found, jobs = kept().run(run())
    whole = [job for job in jobs if job.only_set is None]
    assert len(whole) == len(found.changes) + found.refuted and len(found.changes) == 1


@pytest.mark.timeout(120)
def test_after_a_change_that_only_switches_something_off_the_search_goes_on(
    tmp_path: Path,
) -> None:
    """Of `int more = i;` and `2 * x[i] + more` a like kernel has 0 for more, which is tried first."""
    wrong, off = (
        kernel_file.parse(
            KERNEL.replace("out[i] = 3 * x[i];", f"int more = i; out[i] = 2 * x[i] + {text};")
        )
        for text in ("more", "0")
    )
    now = 0.0

    class Slow(Noted):
        async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
            nonlocal now
            report = await super().run(job, progress, verify)
            now += 10.0
            return report

    async def run() -> FoundRepairs:
        executor = await started(tmp_path)
        try:
            bench = Workbench(executor.compiler, Slow(executor.device))
            search = RepairSearch(bench, limits_of_arch("sm_89"), (), lambda: now, [off])
            return await search.find(wrong, WrongInputs("small", 0), 1000.0, lambda _: None)
        finally:
            await executor.close()

    found = kept().run(run())
    assert found.changes[0].new == "0" and found.changes[0].switches_off(wrong.source)
    assert not all(change.switches_off(wrong.source) for change in found.changes)


@pytest.mark.timeout(120)
def test_a_slow_first_launch_of_a_code_costs_none_of_its_changes(tmp_path: Path) -> None:
    found, _ = found_on(SlowMachineCode, tmp_path)
    assert "2" in [change.new for change in found.changes]


class Endless:
    """A device that notes how long the kernel as it is may take, and says that it did not end."""

    def __init__(self, device: Device) -> None:
        self.seconds: list[float | None] = []

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        self.seconds.append(job.launch_s)
        return Report(status=Status.timeout, reason="checking small, change 1 took too long")


def test_a_kernel_that_an_alternative_makes_endless_takes_no_more_than_the_time_that_is_left(
    tmp_path: Path,
) -> None:
    async def run() -> tuple[LaunchedChanges, list[float | None]]:
        executor = await started(tmp_path)
        device = Endless(executor.device)
        try:
            candidate = kernel_file.parse(KERNEL)
            limits = limits_of_arch("sm_89")
            compiler = ChangeCompiler(candidate, "small", executor.compiler, limits)
            compiled = await compiler.together(())
            assert compiled is not None
            bench = Workbench(executor.compiler, device)
            launches = ChangedLaunches(candidate, bench, {}, clock=lambda: 100.0)
            return await launches.launched(compiled, WrongInputs("small", 0), 132.0), device.seconds
        finally:
            await executor.close()

    launched, seconds = kept().run(run())
    assert launched.is_spoiled
    assert seconds == [2.0], "an emulator may take 16 times as long as a GPU"


@pytest.mark.timeout(120)
def test_a_change_that_never_ends_or_strays_hides_no_other(tmp_path: Path) -> None:
    candidate = kernel_file.parse(KERNEL)
    code = kernel_code(candidate)
    alternatives = [switched(code, change) for change in changes()]
    together = [item for item in alternatives if item is not None]
    assert len(together) >= 4  # the step of the loop may stand alone

    async def run() -> tuple[Status, list[SourceChange]]:
        executor = await started(tmp_path)
        try:
            verdict = await executor.evaluate(candidate, lambda _: None)
            limits = limits_of_arch("sm_89")
            launches = ChangedLaunches(candidate, Workbench(executor.compiler, executor.device), {})
            compiler = ChangeCompiler(candidate, "small", executor.compiler, limits)
            compiled = await compiler.together(together)
            assert compiled is not None
            launched = await launches.launched(compiled, WrongInputs("small", 0), float("inf"))
            return verdict.status, launched.right_ones
        finally:
            await executor.close()

    status, right = kept().run(run())
    assert status is Status.wrong_result
    assert [change.new for change in right] == [new for _, _, new, is_right in CHANGES if is_right]


# A plan whose first size says by what is multiplied, and whose last argument is too small.
PLANNED = (
    KERNEL.replace("launches:", "let:\n  FACTOR: 2\nlaunches:")
    .replace("kernel: triple", "kernel: triple<FACTOR>")
    .replace("[x, out, N]", "[x, out, N - 64]")
    .replace('extern "C" __global__', "template <int K>\n__global__")
    .replace("3 * x[i]", "K * x[i]")
)


@pytest.mark.timeout(120)
def test_changes_of_the_plan_share_the_code_of_the_kernel_as_it_is(tmp_path: Path) -> None:
    candidate = kernel_file.parse(PLANNED)

    def changed(around: str, old: str, new: str) -> SourceChange:
        assert PLANNED.count(around) == 1, around
        start = PLANNED.index(around) + around.index(old)
        return SourceChange(start, start + len(old), new, "by hand")

    right, smaller = changed("N - 64", "N - 64", "N"), changed("N - 64", "64", "128")
    other_code, wider = changed("FACTOR: 2", "2", "5"), changed("[4]", "4", "8")
    refused, no_plan = changed("[64]", "64", "4096"), changed("[4]", "4]", "[")
    unseen = [wider, right, smaller, other_code]
    assert all(is_of_plan(PLANNED, header_end(candidate), it) for it in unseen)
    assert not is_of_plan(PLANNED, header_end(candidate), changed("K * x", "K", "2"))
    assert not is_of_plan(PLANNED, header_end(candidate), changed("exact", "exact", "fp32"))

    async def run() -> tuple[CompiledChanges, LaunchedChanges, int]:
        executor = await started(tmp_path)
        limits = limits_of_arch("sm_89")
        bench = Workbench(executor.compiler, executor.device)
        compiler = ChangeCompiler(candidate, "small", executor.compiler, limits)
        try:
            compiled = await compiler.of_plan(PlanChanges((*unseen, refused, no_plan, right)))
            assert compiled is not None
            launches = ChangedLaunches(candidate, bench, {})
            launched = await launches.launched(compiled, WrongInputs("small", 0), float("inf"))
            return compiled, launched, compiler.compilations
        finally:
            await executor.close()

    compiled, launched, compilations = kept().run(run())
    assert compilations == 1
    assert compiled.changes == (wider, right, smaller) and compiled.left_out == (other_code,)
    assert compiled.smallest_first((wider, smaller, right)) == [smaller, right, wider]
    assert launched.right_ones == [right] and len(launched.checks) == 3

    queue = ChangeQueue(candidate)
    queue.alone(compiled.left_out)
    assert queue.taken() == other_code


# In place of "out[i] = 3 * x[i];": the emulator runs no code with this instruction.
SPOILING = 'asm volatile("suld.b.1d.b32.trap {%0}, [%1, {%2}];" : "=r"(out[i]) : "l"(x), "r"(i));'


@pytest.mark.timeout(120)
def test_changes_that_share_code_with_one_that_spoils_it_are_tried_without_it(
    tmp_path: Path,
) -> None:
    candidate = kernel_file.parse(KERNEL)
    start = KERNEL.index("out[i] =")
    end = KERNEL.index(";", start) + 1
    spoils = SourceChange(start, end, SPOILING, "by hand")
    queue = ChangeQueue(candidate)
    queue.split([*changes()[2:4], spoils])

    async def run() -> tuple[list[SourceChange], list[SourceChange]]:
        executor = await started(tmp_path)
        limits = limits_of_arch("sm_89")
        launches = ChangedLaunches(candidate, Workbench(executor.compiler, executor.device), {})
        compiler = ChangeCompiler(candidate, "small", executor.compiler, limits)
        right: list[SourceChange] = []
        try:
            while isinstance(taken := queue.taken(), list) and len(taken) < 4:
                compiled = await compiler.together(taken)
                assert compiled is not None
                launched = await launches.launched(compiled, WrongInputs("small", 0), float("inf"))
                if launched.is_spoiled:
                    assert spoils in compiled.changes and not launched.checks
                    queue.split(compiled.changes)
                right += launched.right_ones
            return right, [taken] if isinstance(taken, SourceChange) else []
        finally:
            await executor.close()

    right, alone = kept().run(run())
    assert right == changes()[2:4]
    assert alone == [spoils]


@pytest.mark.parametrize(
    ("unchanged", "is_as_alone"),
    [
        (check(0.5), True),
        (check(0.501), True),  # rounded elsewhere
        (check(0.7), False),
        (check(0.5, nans=4), False),
        (check(0.0, ok=True), False),
        (CaseCheck(case="small", hidden=False, ok=False, sets=()), False),
    ],
)
def test_a_kernel_among_alternatives_is_as_wrong_as_it_is_alone(
    unchanged: CaseCheck, is_as_alone: bool
) -> None:
    assert is_as_wrong(check(0.5), unchanged) == is_as_alone
    nan = check(math.nan, nans=4)
    assert is_as_wrong(nan, nan)


@pytest.mark.parametrize(
    ("launches", "seconds", "count"), [(5, 0.05, 24), (5, 5.0, 2), (5, 100.0, 1), (5, 0.0, 24)]
)
def test_a_job_has_as_many_changes_as_take_about_two_seconds(
    launches: int, seconds: float, count: int
) -> None:
    assert _next_count(launches, seconds) == count


# Right with the tunable that it has where the step is 256, and as wrong with others.
STEPPED = KERNEL.replace("launches:", "tunables:\n  BLOCKS: [4, 2]\nlaunches:").replace(
    "grid: [4]", "grid: [BLOCKS]"
)


@pytest.mark.timeout(240)
def test_a_change_that_is_wrong_with_other_tunables_does_not_end_the_search(tmp_path: Path) -> None:
    """What is meant for the step is BLOCKS * 64; 256 is right with four blocks alone."""
    right = kernel_file.parse(
        STEPPED.replace("3 * x[i]", "2 * x[i]").replace("i += 256", "i += BLOCKS * 64")
    )
    wrong = kernel_file.parse(right.source.replace("BLOCKS * 64)", "512)"))
    by_chance = kernel_file.parse(right.source.replace("BLOCKS * 64)", "256)"))
    assert right.source != wrong.source != by_chance.source

    async def run() -> FoundRepairs:
        executor = await started(tmp_path)
        try:
            bench = Workbench(executor.compiler, executor.device)
            search = RepairSearch(bench, limits_of_arch("sm_89"), likes=[by_chance, right])
            return await search.find(wrong, WrongInputs("small", 0), 20.0, lambda _: None)
        finally:
            await executor.close()

    found = kept().run(run())
    assert {change.new for change in found.by_chance} >= {"256"}
    told = finding(wrong, found)
    assert told is not None and "BLOCKS * 64" in told.evidence["new"]
    alone = finding(wrong, FoundRepairs(found.by_chance[:1], found.by_chance[:1]))
    assert alone is not None and "but not with other sizes or tunables" in alone.sentence


# two ways to the same, of which the second one is taken where there are many
TWO_WAYS = KERNEL.replace(
    "        out[i] = 3 * x[i];\n",
    """        if (i % 2 == 0)
            out[i] = 2 * x[i];
        else
            atomicExch(out + i, 3 * x[i]);
""",
)


@pytest.mark.timeout(240)
def test_a_change_with_which_lines_do_not_run_any_more_may_only_keep_the_mistake_from_running(
    tmp_path: Path,
) -> None:
    wrong = kernel_file.parse(TWO_WAYS)
    skips, asks, mends = (
        SourceChange(TWO_WAYS.index(old), TWO_WAYS.index(old) + len(old), new, "by hand")
        for old, new in (
            ("i % 2 == 0", "i >= 0"),
            ("i % 2 == 0", "i % 3\n == 0"),
            ("3 * x", "2\n * x"),
        )
    )

    async def run() -> list[Doubt | None]:
        executor = await started(tmp_path)
        try:
            bench, limits = Workbench(executor.compiler, executor.device), limits_of_arch("sm_89")
            judge = ChangeJudge(wrong, bench, bench, limits, WrongInputs("small", 0), ())
            changed = [(changed_candidate(wrong, item), item) for item in (skips, asks, mends)]
            return [await judge.further_doubt(*pair) for pair in changed]
        finally:
            await executor.close()

    assert kept().run(run()) == [Doubt.skips, Doubt.fails, None]
    found = FoundRepairs([skips, mends], skipping=[skips])
    assert found.likeliest_first(lambda _: False) == ([mends], [skips])
    alone = finding(wrong, FoundRepairs([skips], skipping=[skips]))
    assert alone is not None and "may only keep the mistake from showing" in alone.sentence
