"""Checked mode beside a GPU: the emulator and its compilers are real, the GPU answers by a script."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.config import CHECKS
from evoengine.errors import DeviceError, ToolchainError
from evoengine.evaluate import device_choice, local_executor
from evoengine.evaluate.checked_beside import MEMORY_BYTES, MOST_WAITING, NOTICE, CheckedBeside
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.evaluate.device_choice import device_beside
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU
from evoengine.evaluate.scripted.scripted_findings import checks, timings
from evoengine.protocols import Device, Job, Progress, Report, SearchBar
from evoengine.records import (
    DiagnosisKind,
    Environment,
    Proposal,
    Status,
    Verdict,
    outcome_of,
)
from evoengine.report.as_json import dumps
from evoengine.report.rows import VerdictFigures
from evoengine.report.rows_from_store import verdict_row
from evoengine.report.verdict_report import verdict_report
from evoengine.task.load import load_task
from evoengine.task.schema import Task
from tests.evaluate.kept_fork_server import kept

TASK = """
name: double
reference: double.py:reference
dims: {N: int}
inputs: {x: {shape: [N], dtype: int32}}
outputs: {out: {shape: [N], dtype: int32}}
cases: {large: {N: 4096}, small: {N: 256}}
hidden_cases: {odd: {N: 77}}
tiers: {exact: {atol: 0, rel_rmse: 1e-9}}
objective: {cases: [large]}
baselines: {torch: double.py:reference}
budget: {trials: 1}
"""
# no reference is computed beside a GPU
PYTHON = "def reference(x):\n    raise AssertionError('a reference was asked for')\n"
KERNEL = """\
/* evoengine
name: NAME
precision: exact
launches: [{kernel: doubled, grid: ["ceil_div(N, 128)"], block: [128], args: [x, out, N]}]
*/
extern "C" __global__ void doubled(const int* x, int* out, long long n) {
    __shared__ int tile[128];
    long long i = blockIdx.x * 128LL + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    int other = tile[threadIdx.x ^ 64];
    BARRIER
    tile[threadIdx.x ^ 32] = other;
    __syncthreads();
    other = tile[threadIdx.x ^ 96];
    if (i < n) out[i] = 2 * other;  // NAME
}
"""
# blocks take turns: a sample of them waits for those that are not in it
IN_TURN = """\
/* evoengine
name: NAME
precision: exact
scratch: {turn: {dtype: int32, shape: [1], init: 0}, last: {dtype: int32, shape: [1], init: 0}}
launches: [{kernel: doubled, grid: ["ceil_div(N, 128)"], block: [128], args: [x, out, turn, last, N]}]
*/
extern "C" __global__ void doubled(const int* x, int* out, int* turn, int* last, long long n) {
    long long i = blockIdx.x * 128LL + threadIdx.x;
    if (threadIdx.x == 0) {
        while (atomicAdd(turn, 0) != blockIdx.x) { }
        __threadfence();
    }
    __syncthreads();
    int before = *last;
    __syncthreads();
    if (threadIdx.x == 64) *last = before + 1;
    BARRIER
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(turn, blockIdx.x + 1);
    }
    if (i < n) out[i] = 2 * x[i];  // NAME
}
"""
READS, WRITES = 11, 13  # lines, between which the barrier stands
CLEAN = KERNEL.replace("BARRIER", "__syncthreads();")
# all have read long before the first one writes, so a GPU shows the right result
MISSING = KERNEL.replace("BARRIER", "__nanosleep(5000);")
UNSUPPORTED = KERNEL.replace("BARRIER", '__syncthreads(); asm volatile("barrier.cluster.arrive;");')


def candidate(source: str, name: str = "doubled") -> Candidate:
    return kernel_file.parse(source.replace("NAME", name), f"{name}.cu")


class ScriptedGpu:
    """A device whose candidates are correct, unless it is told another status."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.events: list[str] = []
        self.verified = asyncio.Event()
        self.next_report: dict[str, Any] = {}  # what differs in the next report

    async def start(self, task: Task, task_path: str) -> Environment:
        return SCRIPTED_GPU

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        self.events.append("verified" if verify else "judged")
        if verify:
            self.verified.set()
        luck = Random(0)  # noqa: S311 - not secret
        report = Report(
            status=Status.correct,
            checks=checks(Status.correct, self.task, SCRIPTED_GPU, verify, luck),
            timings=timings(8.0, self.task, 20, luck),
        )
        changed, self.next_report = self.next_report, {}
        return report.model_copy(update=changed)

    async def close(self) -> None: ...


class Watched:
    """The emulator, which tells what it is asked for and waits to be allowed."""

    def __init__(self, device: Device, events: list[str]) -> None:
        self.device = device
        self.events = events
        self.allowed = asyncio.Event()
        self.allowed.set()
        self.asked = asyncio.Event()  # whether a job has come
        self.on_step: Callable[[str], None] = lambda _: None

    async def start(self, task: Task, task_path: str) -> Environment:
        return await self.device.start(task, task_path)

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        self.asked.set()
        await self.allowed.wait()
        self.events.append(f"followed {Path(job.cases[0].code_path).name} {job.cases[0].plan.case}")
        return await self.device.run(job, self.on_step, verify)

    async def close(self) -> None:
        await self.device.close()


class Bench:
    """An executor on a scripted GPU with the emulator beside it."""

    def __init__(
        self,
        folder: Path,
        clang: CompilePool | None = None,
        limit_s: float = 60.0,
        make_device: Callable[[str], Device] | None = None,
        task: str = TASK,
    ) -> None:
        path = write_task(folder, task=task)
        self.task = load_task(path)
        self.gpu = ScriptedGpu(self.task)
        self.emulator = Watched(kept().device("h200"), self.gpu.events)
        self.beside = CheckedBeside(
            self.task,
            str(path),
            clang or CompilePool(1, folder / "ptx", module=CLANG),
            make_device or (lambda arch: self.emulator),
            limit_s,
        )
        nvrtc, baselines = CompilePool(1, folder / "cubins"), {"large": "torch"}
        self.executor = LocalExecutor(
            self.task, str(path), nvrtc, self.gpu, baselines, beside=self.beside
        )

    async def first(self, source: str, name: str = "doubled") -> Verdict:
        given = candidate(source, name)
        return await self.executor.evaluate(given, lambda _: None, search=SearchBar())

    async def verified(self, source: str, name: str = "doubled") -> Verdict:
        given = candidate(source, name)
        return await self.executor.evaluate(given, lambda _: None, True, SearchBar())

    async def __aenter__(self) -> Bench:
        self.notices = (await self.executor.start()).notices
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.executor.close()


def shown(row: VerdictFigures) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    console.print(verdict_report(row))
    return console.file.getvalue()  # type: ignore[attr-defined]


def write_task(folder: Path, more_of_x: str = "", python: str = PYTHON, task: str = TASK) -> Path:
    (folder / "double.yaml").write_text(task.replace("dtype: int32", f"dtype: int32{more_of_x}", 1))
    (folder / "double.py").write_text(python)
    return folder / "double.yaml"


async def pair(bench: Bench, source: str) -> tuple[Verdict, Verdict]:
    """The first verdict and the verification of one candidate."""
    async with bench:
        return await bench.first(source), await bench.verified(source)


@pytest.mark.parametrize(("barrier", "status"), [("__syncthreads();", "correct"), ("", "fault")])
def test_blocks_that_wait_for_others_are_followed_from_the_first_one_on(
    tmp_path: Path, barrier: str, status: str
) -> None:
    _, verified = kept().run(pair(Bench(tmp_path), IN_TURN.replace("BARRIER", barrier)))
    assert verified.status == status, verified.reason
    if status == "correct":
        runs = [check.checked for check in verified.checks]
        assert all(run is not None and run.blocks == run.total_blocks for run in runs)
    else:
        assert verified.reason.startswith("race: ")


def test_a_race_in_a_block_that_is_not_followed_is_found_on_a_small_version(tmp_path: Path) -> None:
    """Of 65536 blocks some are followed, and the fourth is not: of a small version all are."""
    sizes = {"4096": "8388608", "256": "8388736"}
    task = TASK
    for small, large in sizes.items():
        task = task.replace(f"N: {small}}}", f"N: {large}}}")
    only = "if (blockIdx.x != 3) __syncthreads(); else __nanosleep(5000);"
    first, verified = kept().run(pair(Bench(tmp_path, task=task), KERNEL.replace("BARRIER", only)))
    assert first.status is Status.correct
    assert verified.status is Status.fault
    assert "on large with N=81921" in verified.reason
    assert verified.forensics is not None
    assert verified.forensics.case == "large with N=81921"
    assert verified.forensics.diagnoses[0].kind is DiagnosisKind.fault


def test_a_missing_barrier_is_a_fault_with_both_lines_when_it_counts(tmp_path: Path) -> None:
    first, verified = kept().run(pair(Bench(tmp_path), MISSING))
    assert (first.status, first.checked_problem) == (Status.correct, "")
    assert [check.checked for check in first.checks] == [None] * 3
    assert verified.status is Status.fault and verified.reason.startswith("race: ")
    assert f"at line {READS}" in verified.reason and f"at line {WRITES}" in verified.reason
    assert (verified.score, verified.timings) == (None, ())
    found = {check.case: (check.ok, check.checked) for check in verified.checks}
    assert found["large"] == (True, None), "the smallest case is followed first"
    assert found["small"][0] is False and found["small"][1] is not None
    assert verified.reason.startswith(found["small"][1].findings[0])
    proposal = Proposal(operator="seed", source=MISSING)
    one, other = (outcome_of(0, proposal, verdict) for verdict in (first, verified))
    assert (one.after(other).status, one.after(other).score) == (Status.fault, None)


def test_a_fault_in_a_hidden_case_is_told_of_a_small_one(tmp_path: Path) -> None:
    odd = KERNEL.replace("BARRIER", "if (n % 2 == 0) __syncthreads(); else __nanosleep(5000);")
    _, verified = kept().run(pair(Bench(tmp_path), odd))
    assert (verified.status, verified.reason) == (Status.fault, "race in a hidden case")
    assert verified.forensics is not None and verified.forensics.case == "large with N=2561"
    (said,) = (item.sentence for item in verified.forensics.diagnoses)
    assert said.startswith("race: ") and f"at line {READS}" in said and f"at line {WRITES}" in said


def test_a_clean_kernel_keeps_its_verdict_and_says_what_was_followed(tmp_path: Path) -> None:
    first, verified = kept().run(pair(Bench(tmp_path), CLEAN))
    assert verified.status is Status.correct and verified.score == first.score
    assert verified.checked_problem == ""
    for check in verified.checks:
        assert check.ok and check.checked is not None and check.checked.checks == CHECKS
        assert check.checked.blocks == check.checked.total_blocks > 0 == len(check.checked.findings)
    row = verdict_row(verified, "doubled", {}, None)
    assert [case.checked_for for case in row.cases] == [CHECKS] * 3
    assert "checked mode: every memory access is followed" in shown(row)


def test_a_verdict_without_a_search_counts(tmp_path: Path) -> None:
    async def judged() -> Verdict:
        async with Bench(tmp_path) as bench:
            return await bench.executor.evaluate(candidate(MISSING), lambda _: None)

    assert kept().run(judged()).status is Status.fault


def test_what_the_emulator_lacks_passes_and_is_said(tmp_path: Path) -> None:
    _, verified = kept().run(pair(Bench(tmp_path), UNSUPPORTED))
    assert verified.status is Status.correct and verified.score is not None
    assert verified.checked_problem.startswith("unsupported: ")
    assert verified.checked_problem.endswith("; followed on 0 of 3 cases")
    row = verdict_row(verified, "doubled", {}, None)
    assert verified.checked_problem in dumps(row) and "not on all cases: unsuppo" in shown(row)


def test_a_killed_emulator_passes_and_is_said_and_the_next_candidate_is_followed(
    tmp_path: Path,
) -> None:
    async def judged() -> tuple[Verdict, Verdict]:
        async with Bench(tmp_path) as bench:
            device: Any = bench.emulator.device

            def kill(step: str) -> None:
                if step == "following every access on small":
                    os.kill(device._worker.pid, signal.SIGKILL)

            bench.emulator.on_step = kill
            killed = await bench.verified(CLEAN)
            bench.emulator.on_step = lambda _: None
            return killed, await bench.verified(MISSING)

    killed, next_one = kept().run(judged())
    assert killed.status is Status.correct and killed.score is not None
    assert "its process was killed twice" in killed.checked_problem
    assert killed.checked_problem.endswith("followed on 0 of 3 cases")
    assert next_one.status is Status.fault


def test_one_that_is_too_slow_passes_and_is_said(tmp_path: Path) -> None:
    async def judged() -> Verdict:
        async with Bench(tmp_path, limit_s=0.5) as bench:
            bench.emulator.allowed.clear()
            return await bench.verified(MISSING)

    found = kept().run(judged())
    assert found.status is Status.correct
    assert found.checked_problem == "stopped after 0.5 s; followed on 0 of 3 cases"


def test_a_first_verdict_waits_for_nothing_and_the_emulator_begins_with_it(tmp_path: Path) -> None:
    async def judged() -> list[str]:
        async with Bench(tmp_path) as bench:
            bench.emulator.allowed.clear()
            assert (await bench.first(MISSING)).status is Status.correct
            await bench.emulator.asked.wait()
            verifying = asyncio.create_task(bench.verified(MISSING))
            await bench.gpu.verified.wait()
            assert not verifying.done()
            bench.emulator.allowed.set()
            assert (await verifying).status is Status.fault
            return bench.gpu.events

    judged_, verified, *followed = kept().run(judged())
    assert (judged_, verified) == ("judged", "verified")
    assert [event.split()[::2] for event in followed] == [["followed", "small"]], "only once"


@pytest.mark.parametrize("status", [Status.wrong_result, Status.crash])
def test_the_fault_of_one_that_failed_on_the_gpu_is_told_first(
    tmp_path: Path, status: Status
) -> None:
    async def judged() -> tuple[Verdict, Verdict]:
        async with Bench(tmp_path) as bench:
            failed = {"status": status, "reason": "as the GPU says"}
            bench.gpu.next_report = failed
            faulty = await bench.first(MISSING)
            bench.gpu.next_report = failed
            return faulty, await bench.first(CLEAN)

    faulty, clean = kept().run(judged())
    assert (faulty.status, faulty.reason) == (status, "as the GPU says")
    assert faulty.forensics is not None and faulty.forensics.case == "small"
    (found,) = faulty.forensics.diagnoses
    assert found.kind is DiagnosisKind.fault and found.sentence.startswith("race: ")
    assert f"line {READS}" in found.sentence and f"line {WRITES}" in found.sentence
    assert "small" in found.sentence
    assert clean.status is status and clean.forensics is None
    row = verdict_row(faulty, "doubled", {}, None)
    assert "fault  race: " in shown(row) and " 0%" not in shown(row)


def test_a_verdict_does_not_wait_long_for_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_executor, "WAIT_S", 0.1)

    async def judged() -> tuple[Verdict, list[Candidate]]:
        async with Bench(tmp_path) as bench:
            bench.emulator.allowed.clear()
            bench.gpu.next_report = {"status": Status.crash}
            verdict = await bench.first(MISSING)
            wanted = [asked.candidate for asked in bench.beside._asked.values() if asked.wanted]
            bench.emulator.allowed.set()
            return verdict, wanted

    verdict, wanted = kept().run(judged())
    assert verdict.status is Status.crash and verdict.forensics is None
    assert wanted == [], "no further case of it is begun"


def test_one_that_failed_is_not_pushed_out_of_the_queue_and_one_that_counts_goes_before_it(
    tmp_path: Path,
) -> None:
    order: list[str] = []

    async def judged() -> list[Report | None]:
        async with Bench(tmp_path) as bench:
            bench.emulator.allowed.clear()
            bench.beside.begin(candidate(CLEAN, "held"))
            await bench.emulator.asked.wait()
            names = [f"kernel{number}" for number in range(MOST_WAITING + 2)]
            failed = [
                asyncio.create_task(bench.beside.fault(candidate(MISSING, name), 60.0))
                for name in names
            ]
            await asyncio.sleep(0)
            counting = asyncio.create_task(bench.beside.result(candidate(CLEAN, "counts")))
            await asyncio.sleep(0)
            for asked in bench.beside._waiting:
                name = asked.candidate.plan.name
                asked.found.add_done_callback(lambda _, name=name: order.append(name))
            bench.emulator.allowed.set()
            await counting
            return await asyncio.gather(*failed)

    found = kept().run(judged())
    assert order[0] == "counts" and len(order) == MOST_WAITING + 3
    assert [item.status for item in found if item] == [Status.fault] * (MOST_WAITING + 2)


@pytest.mark.parametrize("changed", [{"status": Status.launch_error}, {"is_coarse": True}])
def test_a_candidate_that_takes_no_place_is_taken_out_of_the_queue(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    async def judged() -> tuple[list[str], list[str]]:
        async with Bench(tmp_path) as bench:
            bench.emulator.allowed.clear()
            await bench.first(CLEAN, "held")
            await bench.emulator.asked.wait()
            bench.gpu.next_report = changed
            await bench.first(CLEAN, "dropped")
            await bench.first(CLEAN, "kept")
            waiting = [asked.candidate.plan.name for asked in bench.beside._waiting]
            bench.gpu.next_report = changed
            await bench.first(CLEAN, "held")  # while it is followed: no further case is begun
            bench.emulator.allowed.set()
            await bench.beside.result(candidate(CLEAN, "kept"))
            return waiting, bench.gpu.events

    waiting, events = kept().run(judged())
    assert waiting == ["kept"]
    cases = [event.split()[2] for event in events if event.startswith("followed")]
    assert cases == ["small", "small", "large", "odd"]


def test_the_newest_is_followed_first_and_one_that_is_waited_for_before_it(tmp_path: Path) -> None:
    done: list[str] = []

    async def judged() -> None:
        async with Bench(tmp_path) as bench:
            bench.emulator.allowed.clear()
            bench.beside.begin(candidate(CLEAN, "held"))
            await bench.emulator.asked.wait()
            names = [f"kernel{number}" for number in range(10)]
            for name in names:
                bench.beside.begin(candidate(CLEAN, name))
            assert [item.candidate.plan.name for item in bench.beside._waiting] == names[2:]
            waiting = asyncio.create_task(bench.beside.result(candidate(CLEAN, "kernel4")))
            await asyncio.sleep(0)
            for asked in bench.beside._waiting:
                name = asked.candidate.plan.name
                asked.found.add_done_callback(lambda _, name=name: done.append(name))
            bench.emulator.allowed.set()
            assert (await waiting).problem == ""
            await bench.beside.result(candidate(CLEAN, "kernel9"))

    kept().run(judged())
    assert done[:2] == ["kernel4", "kernel9"]


class Lacking(CompilePool):
    """A pool on a machine without clang."""

    async def start(self) -> str:
        raise ToolchainError("no clang: pip install it")


def test_without_clang_a_run_says_so_at_its_start_and_each_verdict_that_counts(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, clang=Lacking(1, tmp_path, module=CLANG))
    first, verified = kept().run(pair(bench, MISSING))
    assert bench.notices == (f"{NOTICE}no clang: pip install it",)
    assert (first.status, first.checked_problem) == (Status.correct, "")
    assert verified.status is Status.correct
    assert verified.checked_problem == "no clang: pip install it"
    assert bench.gpu.events == ["judged", "verified"]


def test_a_gpu_that_cannot_be_emulated_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no target of architecture 'sm_120'; known: sm_75"):
        device_beside("sm_120", CHECKS)
    bench = Bench(tmp_path, make_device=lambda arch: device_beside("sm_120", CHECKS))
    kept().run(pair(bench, CLEAN))
    assert len(bench.notices) == 1 and "no target of architecture" in bench.notices[0]


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_choice, "missing_for_emulator", lambda: ["llvmlite"])
    with pytest.raises(DeviceError, match=r"llvmlite not installed: pip install 'evoengine"):
        device_beside("sm_90", CHECKS)


def test_an_emulator_that_does_not_start_is_the_problem_of_every_candidate(tmp_path: Path) -> None:
    class Broken(ScriptedGpu):
        async def start(self, task: Task, task_path: str) -> Environment:
            self.events.append("started")
            raise DeviceError("the emulator cannot be used here: no space")

    async def judged() -> tuple[list[Verdict], list[str]]:
        broken = Broken(load_task(write_task(tmp_path)))
        async with Bench(tmp_path, make_device=lambda arch: broken) as bench:
            found = [await bench.verified(source) for source in (CLEAN, MISSING)]
        return found, broken.events

    found, events = kept().run(judged())
    assert [verdict.status for verdict in found] == [Status.correct] * 2
    assert {verdict.checked_problem for verdict in found} == {
        "the emulator cannot be used here: no space"
    }
    assert events == ["started"]


def test_its_process_has_the_lowest_priority_little_memory_and_no_gpu(tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    python = PYTHON + (
        "def drawn(N):\n"
        "    import os, resource, torch\n"
        "    limit = resource.getrlimit(resource.RLIMIT_DATA)\n"
        "    gpus = os.environ['CUDA_VISIBLE_DEVICES']\n"
        f"    open({str(facts)!r}, 'w').write(repr((os.nice(0), limit, gpus)))\n"
        "    return torch.zeros(N, dtype=torch.int32)\n"
    )
    path = write_task(tmp_path, ", draw: double.py:drawn", python)
    task = load_task(path)

    async def judged() -> str:
        beside = CheckedBeside(
            task,
            str(path),
            CompilePool(1, tmp_path / "ptx", module=CLANG),
            lambda arch: emulator_device("h200", CHECKS, tmp_path / "answers", 1, MEMORY_BYTES),
        )
        try:
            await beside.start(SCRIPTED_GPU)
            return (await beside.result(candidate(CLEAN))).problem
        finally:
            await beside.close()

    assert asyncio.run(judged()) == ""
    assert facts.read_text() == repr((19, (MEMORY_BYTES, MEMORY_BYTES), ""))


def test_several_emulators_follow_several_candidates_at_once(tmp_path: Path) -> None:
    path = write_task(tmp_path)
    task, events = load_task(path), list[str]()
    made = list[Watched]()

    def watched(arch: str) -> Device:
        made.append(Watched(kept().device("h200"), events))
        made[-1].allowed.clear()
        return made[-1]

    async def judged() -> list[str]:
        clang = CompilePool(2, tmp_path / "ptx", module=CLANG)
        beside = CheckedBeside(task, str(path), clang, watched, emulators=2)
        try:
            await beside.start(SCRIPTED_GPU)
            names = ["one", "other", "third"]
            for name in names:
                beside.begin(candidate(CLEAN, name))
            await asyncio.gather(*(emulator.asked.wait() for emulator in made))
            waiting = [asked.candidate.plan.name for asked in beside._waiting]
            for emulator in made:
                emulator.allowed.set()
            found = await asyncio.gather(
                *(beside.result(candidate(source)) for source in (CLEAN, MISSING)),
                *(beside.result(candidate(CLEAN, name)) for name in names),
            )
            assert [item.fault is None for item in found] == [True, False, True, True, True]
            return waiting
        finally:
            await beside.close()

    assert len(kept().run(judged())) == 1, "two of three are followed at once"
    assert len(made) == 2


def test_an_unsupported_specialisation_is_the_problem_of_its_own_case(tmp_path: Path) -> None:
    lacking = (
        '#if SIZE == 4096\n asm volatile("barrier.cluster.arrive;");\n#endif\n __syncthreads();'
    )
    source = KERNEL.replace("BARRIER", lacking).replace(
        "precision: exact\n", "precision: exact\nconstants: {SIZE: N}\n"
    )
    _, verified = kept().run(pair(Bench(tmp_path), source))
    assert verified.checked_problem.startswith("unsupported: ")
    assert verified.checked_problem.endswith("followed on 1 of 3 cases")
    followed = {check.case for check in verified.checks if check.checked is not None}
    assert followed == {"small"}


def test_an_emulator_that_is_lent_follows_nothing_until_it_is_back(tmp_path: Path) -> None:
    async def lent() -> tuple[bool, bool, list[str], str]:
        async with Bench(tmp_path) as bench:
            async with bench.beside.lent(6) as benches:
                is_it = [item.device is bench.emulator for item in benches] == [True]
                async with bench.beside.lent(6) as others:
                    none_left = others == []
                bench.beside.begin(candidate(CLEAN))
                await asyncio.sleep(0.1)
                meanwhile = [*bench.gpu.events]
            return (
                is_it,
                none_left,
                meanwhile,
                (await bench.beside.result(candidate(CLEAN))).problem,
            )

    assert kept().run(lent()) == (True, True, [], "")


def test_where_no_emulator_works_none_is_lent(tmp_path: Path) -> None:
    def none(arch: str) -> Device:
        raise DeviceError("no such emulator")

    async def lent() -> object:
        async with Bench(tmp_path, make_device=none) as bench, bench.beside.lent(6) as found:
            return found

    assert kept().run(lent()) == []
