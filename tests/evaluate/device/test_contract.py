"""The contract of every device, whatever a candidate does: one suite over all implementations."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan, ScratchBuffer
from evoengine.config import CHECKS
from evoengine.errors import DeviceError, TaskError, WorkerError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.grader_device import GraderDevice, cuda_device
from evoengine.evaluate.device.two_graders import TwoGraders, cuda_search_device
from evoengine.evaluate.device.worker_device import WorkerDevice
from evoengine.evaluate.device.worker_protocol import HOLDER, NEWCOMER
from evoengine.protocols import CompiledCase, Device, Job, Purpose, RaceReport
from evoengine.records import Status
from evoengine.task.load import load_task
from tests.evaluate.device.kernels import source
from tests.evaluate.kept_fork_server import kept

TASK = """
name: scale
reference: scale.py:forward
dims: {N: int}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {out: {shape: [N], dtype: float32}}
cases: {small: {N: 4096}}
tiers: {fp32: {atol: 1e-6, rel_rmse: 1e-6}}
objective: {cases: [small]}
baselines: {torch: scale.py:forward}
limits: {launch_s: 1.5, evaluate_s: 20, emulator_launch_s: 4, emulator_evaluate_s: 60}
budget: {trials: 1}
"""
SCRIPTED = "tests.evaluate.device.scripted_worker"
HAS_GPU = bool(cuda_devices().names)


class Bench:
    """One device under test, and jobs that it understands."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.front: CompilePool | None = None
        self.path = folder / "scale.yaml"
        self.path.write_text(TASK)
        (folder / "scale.py").write_text("def forward(x):\n    return x * 2\n")
        self.task = load_task(self.path)
        self.pool: CompilePool | None = None

    def device(self) -> WorkerDevice | GraderDevice | TwoGraders:
        match self.kind:
            case "emulator":
                return kept().device("h200", threads=1)
            case "cuda":
                return cuda_device(0)
            case "scripted grader":
                return GraderDevice(kept().server(SCRIPTED))
            case "two scripted graders":
                return two_scripted_graders()
            case "two graders on cuda":
                return cuda_search_device(0)
        return WorkerDevice(kept().server(SCRIPTED))

    async def job(self, behaviour: str) -> Job:
        if "scripted" in self.kind:
            plan = CasePlan(case="small", hidden=False, macros={}, scratch={}, launches=())
            return Job(
                cases=(CompiledCase(plan=plan, code_path=behaviour, functions={}),),
                tier="fp32",
                candidate=behaviour,
                scored_only=self.kind == "two scripted graders",
            )
        if self.pool is None:
            self.pool = CompilePool(1)
            await self.pool.start()
            self.front = CompilePool(1, module=CLANG) if self.kind == "emulator" else None
        candidate = candidates.parse(source(behaviour))
        build = await CandidateCompiler(self.task, self.pool, self.front).compile(
            candidate, DeviceLimits("sm_90", 232448, 132), lambda _: None
        )
        return Job(
            cases=build.cases,
            tier="fp32",
            baselines={"small": "torch"},
            candidate=build.code_digest,
            scored_only=self.kind == "two graders on cuda",
        )

    def play(self, scene: Callable[[Device], Awaitable[Any]]) -> Any:
        """Runs `scene` with a started device, and closes everything."""

        async def run() -> Any:
            device = self.device()
            try:
                await device.start(self.task, str(self.path))
                return await scene(device)
            finally:
                await device.close()
                for pool in (self.pool, self.front):
                    if pool is not None:
                        await pool.close()

        return kept().run(run())


def two_scripted_graders(used_memory: float | None = 0.0) -> TwoGraders:
    """A device with two graders of the scripted module."""
    server = kept().server(SCRIPTED)
    return TwoGraders(GraderDevice(server), GraderDevice(server), lambda: used_memory)


KINDS = [
    "scripted",
    "scripted grader",
    "two scripted graders",
    "emulator",
    pytest.param("cuda", marks=pytest.mark.gpu),
    pytest.param("two graders on cuda", marks=pytest.mark.gpu),
]


def bench(kind: str, folder: Path) -> Bench:
    if "cuda" in kind and not HAS_GPU:
        pytest.skip("needs a CUDA device")
    return Bench(kind, folder)


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Every implementation."""
    return bench(request.param, tmp_path)


def candidates_process(device: WorkerDevice | GraderDevice | TwoGraders) -> int:
    """The process that runs candidates."""
    if isinstance(device, TwoGraders):
        return candidates_process(device._first)
    worker = (
        device._pair and device._pair.shown if isinstance(device, GraderDevice) else device._worker
    )
    assert worker is not None and worker.pid is not None
    return worker.pid


def verifying_process(device: WorkerDevice | GraderDevice | TwoGraders, job: Job) -> int:
    """The process that has verified a correct candidate."""
    if isinstance(device, TwoGraders):
        both = (device._first, device._second)
        return verifying_process(next(it for it in both if job.candidate in it._own._pairs), job)
    if not isinstance(device, GraderDevice):
        return candidates_process(device)
    pid = device._own._pairs[job.candidate].shown.pid
    assert pid is not None
    return pid


async def processes(device: WorkerDevice | GraderDevice | TwoGraders) -> list[int]:
    """All processes that judge or stand by."""
    if isinstance(device, TwoGraders):
        started = [one for one in (device._first, device._second) if one._grader is not None]
        return [pid for one in started for pid in await processes(one)]
    if isinstance(device, GraderDevice):
        own = [pair.shown for pair in device._own._pairs.values()]
        pairs = [pair.shown for pair in (device._pair, *device._spares.pairs) if pair is not None]
        found = [device._grader, *pairs, *own]
    else:
        found = [device._worker, (await device._spare)[0]]
    return [one.pid for one in found]


def run_in_turn(backend: Bench, *behaviours: str) -> list[Any]:
    async def scene(device: Device) -> list[Any]:
        return [
            await device.run(await backend.job(behaviour), lambda _: None)
            for behaviour in behaviours
        ]

    return backend.play(scene)


def test_a_correct_candidate_is_correct(backend):
    assert run_in_turn(backend, "correct")[0].status is Status.correct


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("endless", Status.timeout),
        ("illegal access", Status.crash),
        ("wrong", Status.wrong_result),
        ("prints", Status.correct),
    ],
)
def test_whatever_a_candidate_does_is_a_value_and_the_next_one_finds_a_healthy_device(
    backend, behaviour, status
):
    bad, good = run_in_turn(backend, behaviour, "correct")
    # before it can break anything
    seen = Status.fault if (backend.kind, behaviour) == ("emulator", "illegal access") else status
    assert bad.status is seen, bad
    assert status is Status.correct or bad.reason
    assert good.status is Status.correct, good


def test_what_a_candidate_prints_is_cut_to_a_few_kilobytes(backend):
    assert len(run_in_turn(backend, "prints")[0].detail) <= 64 * 1024


def test_a_fresh_process_has_run_no_other_candidate(backend):
    async def scene(device: Any) -> tuple[int, int, int]:
        job = await backend.job("correct")
        await device.run(job, lambda _: None)
        first = candidates_process(device)
        await device.run(job, lambda _: None)
        second = candidates_process(device)
        verified = await device.run(job, lambda _: None, verify=True)
        assert verified.status is Status.correct, verified
        return first, second, verifying_process(device, job)

    first, second, verify = backend.play(scene)
    assert first == second != verify


def test_a_verification_goes_before_the_first_verdicts_that_wait(scripted):
    async def scene(device: Device) -> list[str]:
        job, ended = await scripted.job("correct"), list[str]()

        async def judge(name: str, verify: bool = False) -> None:
            await device.run(job, lambda _: None, verify=verify)
            ended.append(name)

        await asyncio.gather(judge("1"), judge("2"), judge("3"), judge("verify 1", verify=True))
        return ended

    assert scripted.play(scene) == ["1", "verify 1", "2", "3"]


def test_a_diagnosis_goes_behind_all_that_waits(scripted):
    async def scene(device: Device) -> list[str]:
        job, ended = await scripted.job("correct"), list[str]()

        async def judge(name: str, verify: bool = False, **changes: Any) -> None:
            await device.run(job.model_copy(update=changes), lambda _: None, verify=verify)
            ended.append(name)

        await asyncio.gather(
            judge("1"),
            judge("diagnosis", purpose=Purpose.diagnosis),
            judge("2"),
            judge("verify 1", verify=True),
            judge("3"),
        )
        return ended

    assert scripted.play(scene) == ["1", "verify 1", "2", "3", "diagnosis"]


def diagnosing(job: Job) -> Job:
    return job.model_copy(update={"purpose": Purpose.diagnosis, "checked": False})


def test_a_quick_verdict_on_a_wrong_candidate_leaves_its_diagnosis_to_a_job_of_its_own(backend):
    async def scene(device: Device) -> Any:
        wrong = await backend.job("wrong")
        quick = wrong.model_copy(update={"purpose": Purpose.quick_verdict})
        return [await device.run(job, lambda _: None) for job in (quick, diagnosing(wrong))]

    quick, diagnosis = backend.play(scene)
    assert quick.status is diagnosis.status is Status.wrong_result
    assert quick.forensics is None and "forensics" not in quick.phases_s
    assert diagnosis.forensics is not None and diagnosis.forensics.output == "out"


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("correct", Status.correct),
        ("endless", Status.timeout),
        ("illegal access", Status.crash),
    ],
)
def test_whatever_a_candidate_does_in_its_diagnosis_the_next_job_finds_a_healthy_device(
    backend, behaviour, status
):
    async def scene(device: Device) -> Any:
        diagnosis = await device.run(diagnosing(await backend.job(behaviour)), lambda _: None)
        return diagnosis, await device.run(await backend.job("correct"), lambda _: None)

    diagnosis, after = backend.play(scene)
    assert diagnosis.status is status and diagnosis.forensics is None, diagnosis
    assert diagnosis.timings == diagnosis.modelled == ()
    assert after.status is Status.correct, after


def test_a_cancelled_job_leaves_a_healthy_device(backend):
    async def scene(device: Device) -> Any:
        endless, correct = await backend.job("endless"), await backend.job("correct")
        under_way = asyncio.create_task(device.run(endless, lambda _: None))
        await asyncio.sleep(0.3)
        under_way.cancel()
        await asyncio.wait([under_way])
        return await device.run(correct, lambda _: None)

    assert backend.play(scene).status is Status.correct


def test_closing_ends_every_process_and_may_be_repeated(backend):
    async def scene(device: Any) -> list[int]:
        await device.run(await backend.job("correct"), lambda _: None)
        await device.run(await backend.job("correct"), lambda _: None, verify=True)
        pids = await processes(device)
        await device.close()
        await device.close()
        return pids

    for pid in backend.play(scene):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# ------------------------------------------------- races


@pytest.fixture(params=[kind for kind in KINDS if kind not in ("scripted", "emulator")])
def measuring(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A device whose times are measured."""
    return bench(request.param, tmp_path)


@pytest.fixture(params=["scripted", "emulator"])
def modelling(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A device whose times are modelled."""
    return bench(request.param, tmp_path)


async def raced(backend: Bench, device: Device, newcomer: str, holder: str) -> RaceReport:
    """The report on a race of two candidates that behave so."""
    jobs = [await backend.job(behaviour) for behaviour in (newcomer, holder)]
    return await device.race(jobs[0], jobs[1], lambda _: None)


def test_a_race_has_as_many_times_of_both_sides_as_of_the_baseline_beside_them(measuring):
    report = measuring.play(lambda device: raced(measuring, device, "adds", "correct"))
    assert report.status is Status.correct, report
    (timing,) = report.timings
    assert (timing.case, timing.baseline) == ("small", "torch")
    samples = [timing.newcomer_us, timing.holder_us, timing.baseline_us]
    assert {len(times) for times in samples} == {len(timing.calls)} == {len(timing.groups)}
    assert min(map(min, samples)) > 0


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("endless", Status.timeout),
        ("illegal access", Status.crash),
        ("wrong", Status.wrong_result),
    ],
)
@pytest.mark.parametrize("side", [NEWCOMER, HOLDER])
def test_a_race_names_the_side_that_fails_and_the_next_job_finds_a_healthy_device(
    measuring, behaviour, status, side
):
    sides = [behaviour, "correct"] if side == NEWCOMER else ["correct", behaviour]

    async def scene(device: Device) -> Any:
        failed = await raced(measuring, device, *sides)
        again = await raced(measuring, device, "adds", "correct")
        verdict = await device.run(await measuring.job("correct"), lambda _: None)
        return failed, again.status, verdict.status

    failed, again, verdict = measuring.play(scene)
    assert (failed.status, failed.at_fault) == (status, side), failed
    assert failed.reason and failed.timings == ()
    assert again is verdict is Status.correct


def test_a_cancelled_race_leaves_a_device_that_races(measuring):
    async def scene(device: Device) -> Any:
        under_way = asyncio.create_task(raced(measuring, device, "endless", "correct"))
        await asyncio.sleep(0.3)
        under_way.cancel()
        await asyncio.wait([under_way])
        return await raced(measuring, device, "adds", "correct")

    assert measuring.play(scene).status is Status.correct


def test_where_times_are_modelled_there_is_nothing_to_race(modelling):
    async def scene(device: Device) -> Any:
        with pytest.raises(DeviceError, match=r"^this device does not race candidates"):
            await raced(modelling, device, "adds", "correct")
        return await device.run(await modelling.job("correct"), lambda _: None)

    assert modelling.play(scene).status is Status.correct


# ------------------------------------------------- what the task's own functions do


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def judging(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A device that calls the task's functions."""
    return bench(request.param, tmp_path)


SILENT_S = 2.0
ENDED = r"scale.py:forward for case small ended its process with "


@pytest.mark.sampled("code", one_in=3)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "import time\ndef forward(x): time.sleep(3600)",
            (
                r"^scale.py:forward for case small has not ended after 2 s, which is all that the"
                r" task's limits.reference_s allows: .*yaml$"
            ),
        ),
        (
            "while True: pass\ndef forward(x): return x * 2",
            "^scale.py:forward for case small has not ended after 2 s",
        ),
        ("import os\ndef forward(x): os._exit(3)", ENDED + "exit code 3: it printed nothing$"),
        (
            "import os, signal\ndef forward(x): os.kill(os.getpid(), signal.SIGSEGV)",
            ENDED + "signal SIGSEGV",
        ),
        (
            "def forward(x): raise KeyboardInterrupt",
            "^scale.py:forward raised KeyboardInterrupt for case small$",
        ),
        (
            "def forward(x): return x.float() * 2",
            "^scale.py:forward: out must be torch.float64 for case small, .*, got torch.float32",
        ),
        (
            "def forward(x): return x.mul_(2)",
            "^scale.py:forward writes into its input x for case small",
        ),
        (
            "def forward(x): raise ValueError('\\udc80')",
            r"^scale.py:forward raised ValueError for case small: \?$",
        ),
    ],
    ids=["endless", "endless import", "exit", "segfault", "interrupt", "type", "writes", "no text"],
)
def test_a_fault_of_the_reference_is_an_error_and_not_a_verdict(judging, code, says):
    (judging.folder / "scale.py").write_text(code + "\n")
    limits = judging.task.limits.model_copy(update={"reference_s": SILENT_S})
    judging.task = judging.task.model_copy(update={"limits": limits})
    with pytest.raises(TaskError, match=re.compile(says, re.DOTALL)):
        run_in_turn(judging, "wrong")


def test_a_slow_reference_has_the_time_that_its_task_gives_it_and_takes_none_of_a_candidates(
    judging,
):
    (judging.folder / "scale.py").write_text(
        "import time\n"
        "def forward(x):\n"
        "    if 'float64' in str(x.dtype):\n"
        "        time.sleep(1.2)  # as a reference; as a baseline it is captured many times\n"
        "    return x * 2\n"
    )
    limits = judging.task.limits.model_copy(
        update={"reference_s": 60.0, "launch_s": 1.0, "emulator_launch_s": 1.0}
    )
    judging.task = judging.task.model_copy(update={"limits": limits, "distributions": ("normal",)})
    assert run_in_turn(judging, "correct")[0].status is Status.correct


# ------------------------------------------------- what the emulator alone finds


@pytest.fixture
def emulator(tmp_path: Path) -> Bench:
    return Bench("emulator", tmp_path)


def test_the_emulator_models_a_time_and_says_how_much_it_followed(emulator):
    (report,) = run_in_turn(emulator, "correct")
    assert report.timings == () and [model.case for model in report.modelled] == ["small"]
    assert (
        report.modelled[0].us > 0
        and report.modelled[0].limiter in report.modelled[0].launches[0].bounds_us
    )
    checked = report.checks[0].checked
    assert (checked.blocks, checked.total_blocks, checked.checks) == (32, 32, CHECKS)
    # lanes side by side, 4 bytes each
    assert 3 < checked.global_sectors / checked.global_requests <= 4


@pytest.mark.parametrize(
    ("behaviour", "status", "says"),
    [
        ("writes beyond", Status.fault, "out of bounds: thread 0 writes 4 bytes at out+16416"),
        ("misaligned", Status.fault, "misaligned: thread 0 reads 8 bytes at x+1"),
        ("overwrites its input", Status.cheat, "input 'x' was overwritten"),
        ("trap", Status.crash, "the kernel trapped at line 11"),
        ("leaves a band out", Status.wrong_result, "512 NaN"),
    ],
)
def test_the_emulator_says_what_and_where(emulator, behaviour, status, says):
    report, good = run_in_turn(emulator, behaviour, "correct")
    assert (report.status, says in report.reason) == (status, True), report
    assert status is not Status.fault or report.detail.splitlines()[0] in report.reason
    assert good.status is Status.correct


def test_a_second_verdict_follows_nothing_and_models_the_same_time(emulator):
    async def scene(device: Device) -> list[Any]:
        job = await emulator.job("correct")
        return [
            await device.run(
                job.model_copy(update={"checked": first}), lambda _: None, verify=not first
            )
            for first in (True, False)
        ]

    first, second = emulator.play(scene)
    assert first.checks[0].checked is not None and second.checks[0].checked is None
    assert first.modelled == second.modelled


def test_buffers_that_no_machine_has_are_refused_before_they_are_made(emulator):
    async def scene(device: Device) -> Any:
        job = await emulator.job("correct")
        case = job.cases[0]
        plan = case.plan.model_copy(
            update={"scratch": {"huge": ScratchBuffer(dtype="float32", shape=(25 * 10**9,))}}
        )
        return await device.run(
            job.model_copy(update={"cases": (case.model_copy(update={"plan": plan}),)}),
            lambda _: None,
        )

    report = emulator.play(scene)
    assert report.status is Status.launch_error and "buffers of 1000000" in report.reason


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"grid": (2**31,)}, "grid.x must be 1 to 2147483647, got 2147483648"),
        ({"block": (2048,)}, "2048"),
        ({"args": ()}, "scale takes 3 parameters, the launch passes 0"),
        ({"shared_bytes": 300_000}, "300000 bytes of shared memory"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused_with_the_figure(emulator, changes, says):
    async def scene(device: Device) -> Any:
        job = await emulator.job("correct")
        case = job.cases[0]
        launch = case.plan.launches[0].model_copy(update=changes)
        plan = case.plan.model_copy(update={"launches": (launch,)})
        return await device.run(
            job.model_copy(update={"cases": (case.model_copy(update={"plan": plan}),)}),
            lambda _: None,
        )

    report = emulator.play(scene)
    assert report.status is Status.launch_error and says in report.reason, report


def test_an_entry_that_the_code_lacks_is_refused_by_name(emulator):
    async def scene(device: Device) -> Any:
        job = await emulator.job("correct")
        case = job.cases[0].model_copy(update={"functions": {"scale": "_Z4gone"}})
        return await device.run(job.model_copy(update={"cases": (case,)}), lambda _: None)

    report = emulator.play(scene)
    assert (
        report.status is Status.launch_error
        and "no kernel '_Z4gone'; known kernels: scale" in report.reason
    )


# ------------------------------------------------- faults that only a script can have


@pytest.fixture(params=["scripted", "scripted grader"])
def scripted(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(request.param, tmp_path)


@pytest.fixture
def scripted_worker(tmp_path: Path) -> Bench:
    return Bench("scripted", tmp_path)


def test_a_worker_that_dies_under_a_candidate_is_a_crash_with_its_last_words(scripted):
    died, good = run_in_turn(scripted, "kills its worker", "correct")
    assert died.status is Status.crash
    assert "SIGSEGV" in died.reason
    assert "last words" in died.detail
    assert good.status is Status.correct


def test_a_worker_that_dies_in_our_own_time_is_our_fault(scripted):
    with pytest.raises(WorkerError, match="SIGSEGV"):
        run_in_turn(scripted, "ours kills its worker")


def test_a_worker_that_somebody_kills_once_is_no_fault_of_the_candidate(scripted):
    report, good = run_in_turn(scripted, "is killed once", "correct")
    assert (report.status, good.status) == (Status.correct, Status.correct)


def test_a_candidate_whose_process_is_killed_twice_is_a_crash_and_the_run_goes_on(scripted):
    report, good, other = run_in_turn(scripted, "is killed", "correct", "is killed")
    assert report.status is other.status is Status.crash
    assert "killed twice (SIGKILL) while it ran" in report.reason
    assert good.status is Status.correct


def test_two_candidates_in_a_row_whose_processes_are_killed_are_the_machines_fault(scripted):
    with pytest.raises(WorkerError, match=r"SIGKILL.*, sent from outside"):
        run_in_turn(scripted, "is killed", "is killed")


def test_a_worker_that_is_killed_in_our_own_time_is_the_machines_fault(scripted):
    with pytest.raises(WorkerError, match=r"SIGKILL while .*sent from outside"):
        run_in_turn(scripted, "ours is killed")


def test_output_of_one_candidate_is_not_reported_with_the_next(scripted):
    first, second = run_in_turn(scripted, "prints and is wrong", "wrong")
    assert "the first one's words" in first.detail
    assert second.detail == ""


def test_the_time_that_we_take_is_not_taken_from_a_candidate(scripted):
    limits = scripted.task.limits.model_copy(update={"evaluate_s": 0.5})
    scripted.task = scripted.task.model_copy(update={"limits": limits})
    assert run_in_turn(scripted, "waits for us")[0].status is Status.correct
    assert run_in_turn(scripted, "endless")[0].status is Status.timeout


def test_one_of_many_changed_kernels_has_less_time_than_its_task_gives(scripted):
    limits = scripted.task.limits.model_copy(update={"launch_s": 60.0, "evaluate_s": 60.0})
    scripted.task = scripted.task.model_copy(update={"limits": limits})

    async def scene(device: Device) -> Any:
        endless = (await scripted.job("endless")).model_copy(update={"launch_s": 0.05})
        return await asyncio.wait_for(device.run(endless, lambda _: None), 30.0)

    assert scripted.play(scene).status is Status.timeout


def test_a_spare_that_could_not_start_beside_the_other_is_tried_again(scripted_worker, tmp_path):
    scripted_worker.path = tmp_path / "flaky.yaml"

    async def scene(device: WorkerDevice) -> Any:
        await device.run(await scripted_worker.job("correct"), lambda _: None)
        await asyncio.wait([device._spare])
        return await device.run(await scripted_worker.job("correct"), lambda _: None, verify=True)

    assert scripted_worker.play(scene).status is Status.correct
    assert (tmp_path / "flaky.yaml.3").exists()


def test_an_abandoned_fork_does_not_answer_for_the_next():
    async def scene() -> tuple[int, int, int]:
        fork_server = ForkServer(SCRIPTED)
        try:
            first = await fork_server.fork()
            given_up = asyncio.create_task(fork_server.fork())
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            second = await fork_server.fork()
            os.killpg(second.pid, signal.SIGTERM)
            ended = await fork_server.wait(second.pid)
            for fork in (first, second):
                fork.connection.close()
                os.close(fork.log)
            return first.pid, second.pid, ended
        finally:
            await fork_server.close()

    first, second, ended = asyncio.run(scene())
    assert second > first
    assert ended == -signal.SIGTERM


def test_no_worker_outlives_a_parent_that_is_killed(scripted_worker, tmp_path):
    program = (
        "import asyncio, pathlib, time\n"
        "from evoengine.task.load import load_task\n"
        "from evoengine.evaluate.device.fork_client import ForkServer\n"
        "from evoengine.evaluate.device.worker_device import WorkerDevice\n"
        "async def main():\n"
        f"    device = WorkerDevice(ForkServer({SCRIPTED!r}))\n"
        f"    await device.start(load_task(pathlib.Path({str(scripted_worker.path)!r})), 'scale.yaml')\n"
        "    print(device._worker.pid, device._fork_server._process.pid, flush=True)\n"
        "    time.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        worker, fork_server = map(int, parent.stdout.readline().split())
        assert _members(worker) and _members(fork_server)
        parent.kill()
    assert not _left_of(worker) | _left_of(fork_server)


def test_a_kill_reaches_the_whole_process_group(scripted):
    async def scene(device: Any) -> int:
        await device.run(await scripted.job("correct"), lambda _: None)
        group = candidates_process(device)
        await device.run(await scripted.job("child"), lambda _: None)
        return group

    assert not _left_of(scripted.play(scene))


def test_a_reference_that_raises_is_a_task_error(scripted, tmp_path):
    async def start() -> None:
        device = scripted.device()
        try:
            await device.start(scripted.task, "raising.yaml")
        finally:
            await device.close()

    with pytest.raises(TaskError, match="reference raised ValueError"):
        kept().run(start())


@pytest.mark.parametrize("kind", [WorkerDevice, GraderDevice])
def test_a_worker_program_that_does_not_start_says_so(scripted_worker, kind):
    async def start() -> None:
        device = kind(ForkServer("tests.no_such_module"))
        try:
            await device.start(scripted_worker.task, "scale.yaml")
        finally:
            await device.close()

    with pytest.raises(WorkerError, match=r"No module named .tests\.no_such_module"):
        asyncio.run(start())


def _left_of(group: int) -> set[int]:
    """The processes of a killed group that live on: a signal that was sent takes a moment to end
    those that nobody waits for.
    """
    for _ in range(200):
        if not (left := _members(group)):
            break
        time.sleep(0.02)
    return left


def _members(group: int) -> set[int]:
    """The living processes of a process group."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, _, of_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(of_group) == group and state != "Z":
                found.add(int(folder.name))
    return found
