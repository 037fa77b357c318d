"""A CUDA device behind two kinds of processes: a grader, and a pair of runners that run candidates,
one in shown cases, one in hidden ones.

The grader lives as long as the device, unless a profiler was in it; a pair is replaced when one of
the two was killed or broke its context. First verdicts share a pair; a verification gets a new one,
which is kept for the races of its candidate, and a measurement of kernel activity one that runs
nothing else. Spare pairs stand by.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from evoengine.errors import WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.grader_process import (
    GraderProcess,
    grader_died,
    grader_too_slow,
)
from evoengine.evaluate.device.own_runners import OwnRunners
from evoengine.evaluate.device.runner_pair import RunnerPair, first_ended
from evoengine.evaluate.device.spare_pairs import SparePairs
from evoengine.evaluate.device.step_failures import KILLED, killed_twice, timed_out
from evoengine.evaluate.device.turn import Rank, Turn, rank_of
from evoengine.evaluate.device.worker_device import gpu_limits, profiling_limits, with_output
from evoengine.evaluate.device.worker_process import StepTimeout, WorkerDied
from evoengine.evaluate.device.worker_protocol import (
    HOLDER,
    NEWCOMER,
    RACING,
    RUNNER_ENDED,
    RUNNER_NOT_STARTED,
    Done,
    RaceDone,
    Run,
    Runners,
    RunRace,
)
from evoengine.protocols import Job, Progress, Purpose, RaceReport, Report
from evoengine.records import Environment, Status
from evoengine.task.schema import Task

_DOUBTFUL = (Status.crash, Status.launch_error)  # where other candidates have run before


def cuda_device(ordinal: int, code_folder: Path | None = None) -> GraderDevice:
    """The CUDA device of this number; `code_folder` as for GraderDevice."""
    return GraderDevice(cuda_fork_server(ordinal, code_folder), code_folder)


def cuda_fork_server(ordinal: int, code_folder: Path | None = None) -> ForkServer:
    """What graders and runners of a CUDA device are forked from; `code_folder` as for
    GraderDevice.
    """
    bytecode = code_folder / "bytecode" if code_folder else None
    return ForkServer("evoengine.evaluate.worker.cuda_worker", [str(ordinal)], bytecode)


class GraderDevice:
    """Implements protocols.Device."""

    def __init__(
        self, fork_server: ForkServer, code_folder: Path | None = None, spares: int = 1
    ) -> None:
        """In `code_folder` the grader keeps the code that torch compiles for baselines; runners are
        not given its name. `spares` pairs stand by.
        """
        self._fork_server = fork_server
        self._code_folder = code_folder
        self._task: Task | None = None
        self._task_path = ""
        self._grader: GraderProcess | None = None
        self._pair: RunnerPair | None = None  # of the job under way, or of first verdicts
        self._spares = SparePairs(self._spawn_pair, spares)
        self._grader_ends = False  # whether it has told that its last report was its last
        self._own = OwnRunners()
        self._ending = set[asyncio.Task[None]]()  # of pairs that nobody waits for
        self._killed_twice = False  # whether the last candidate's process was
        self._turn = Turn()
        self._asked = 0  # jobs and races that wait or are under way

    @property
    def asked(self) -> int:
        """How many jobs and races wait for it or are under way."""
        return self._asked

    async def start(self, task: Task, task_path: str) -> Environment:
        """Starts the grader; raises DeviceError, TaskError or WorkerError."""
        self._task, self._task_path = task, task_path
        return await self._start_grader()

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        """Runs one job at a time: races first, then verifications, then first verdicts, diagnoses
        when nothing else waits, and of each kind the one that was asked for first. A broken
        process is replaced before the next one.
        """
        if verify and self._turn.is_taken:
            await self._refill(1 + self._turn.waiting_soon)  # pairs start while their jobs wait
        async with self._in_turn(rank_of(job, verify), job.number):
            if self._task is None:
                raise WorkerError("the device was asked to judge before it was started")
            is_profiled = job.purpose is Purpose.activity
            try:
                await self._provide_grader(progress, may_have_profiler=is_profiled)
                if is_profiled:
                    report = await self._profile(job, progress)
                elif verify:
                    report = await self._judge_in_own_runners(job, progress)
                else:
                    report = await self._judge_again_if_doubtful(job, progress)
                if job.cases:
                    await self._refill_if_idle()
                return report
            except BaseException:
                # processes in the middle of a job cannot take the next one
                await self._kill_all()
                raise

    async def race(self, newcomer: Job, holder: Job, progress: Progress) -> RaceReport:
        """Races two candidates, each in runners that run no other."""
        async with self._in_turn(Rank.race):
            if self._task is None:
                raise WorkerError("the device was asked to race before it was started")
            try:
                await self._provide_grader(progress)
                report = await self._race(newcomer, holder, progress)
                if report.reason.startswith((RUNNER_ENDED, RUNNER_NOT_STARTED)):
                    progress("a process of the race ended; racing once more in new ones")
                    if report.reason.startswith(RUNNER_NOT_STARTED):
                        # those that are kept may have left no memory for it
                        await self._end(self._own.clear())
                    report = await self._race(newcomer, holder, progress)
                if report.reason.startswith(RUNNER_NOT_STARTED):
                    raise WorkerError(f"in two races in a row: {report.reason}")
                await self._refill_if_idle()
                return report
            except BaseException:
                await self._kill_all()
                raise

    async def close(self) -> None:
        """Kills every process."""
        await self.end_processes()
        await self._fork_server.close()

    async def end_processes(self) -> None:
        """Kills all but the fork server, which may be that of another device as well."""
        await self._kill_all()
        await self._end(self._spares.clear())
        await asyncio.gather(*self._ending, return_exceptions=True)

    @asynccontextmanager
    async def _in_turn(self, rank: Rank, number: int = 0) -> AsyncIterator[None]:
        """One job or race at a time, by their ranks and numbers."""
        self._asked += 1
        try:
            async with self._turn.taken(rank, number):
                yield
        finally:
            self._asked -= 1

    async def _refill_if_idle(self) -> None:
        """Lets spare pairs start, if nobody waits for this device."""
        if self._asked == 1:
            await self._refill()

    async def _refill(self, needed: int | None = None) -> None:
        with suppress(WorkerError):  # who needs a pair later finds out whether it lasts
            await self._spares.refill(needed)

    async def _judge_in_own_runners(self, job: Job, progress: Progress) -> Report:
        """Judges a candidate in a pair that has run no other, and keeps the pair for its races."""
        progress("changing to a new process")
        async with self._shared_pair_aside():
            report = await self._judge_again_if_killed(job, progress)
            if self._pair is not None and report.status is Status.correct:
                own, self._pair = self._pair, None
                self._end_later(self._own.keep(job.candidate, own))
            return report

    @asynccontextmanager
    async def _shared_pair_aside(self) -> AsyncIterator[None]:
        """Sets the pair of first verdicts aside, so that the next job gets a new one, which is
        ended at the end if it is still there.
        """
        shared, self._pair = self._pair, None
        try:
            yield
        finally:
            own, self._pair = self._pair, shared
            if own is not None:
                await self._end([own])

    async def _race(self, newcomer: Job, holder: Job, progress: Progress) -> RaceReport:
        """One race; only where it was run to its end, both pairs are kept."""
        jobs = {NEWCOMER: newcomer, HOLDER: holder}
        racing = dict[str, RunnerPair]()
        try:
            for side, job in jobs.items():
                racing[side] = self._own.take(job.candidate) or await self._spares.take()
            report = await self._ask_race(newcomer, holder, racing, progress)
        except BaseException:
            await self._end(list(racing.values()))
            raise
        if report.status is not Status.correct:
            await self._end(list(racing.values()))
            return report
        for side, job in jobs.items():
            self._end_later(self._own.keep(job.candidate, racing[side]))
        return report

    async def _ask_race(
        self, newcomer: Job, holder: Job, racing: Mapping[str, RunnerPair], progress: Progress
    ) -> RaceReport:
        """The grader's report; raises WorkerError and TaskError."""
        assert self._task is not None and self._grader is not None
        pairs = list(racing.values())
        allowed = gpu_limits(self._task.limits)
        runners = self._grader.runners_of(pairs, self._spares.pairs)
        total_s = 2 * allowed.total_s
        try:
            answer = await self._grader.ask(
                lambda number: RunRace(
                    id=number, newcomer=newcomer, holder=holder, runners=runners
                ),
                progress,
                allowed.step_s,
                total_s,
                self._task.limits.reference_s,
                lambda: self._end(pairs),
            )
        except StepTimeout as error:
            if not error.step.candidate:
                raise grader_too_slow(error, self._task_path) from error
            if error.seconds < allowed.step_s:  # the time of both together was spent
                return RaceReport(
                    status=Status.timeout, reason=f"the race took longer than {total_s:.3g} s"
                )
            found = [side for side in racing if error.step.what.startswith(f"{RACING} {side} ")]
            return RaceReport(
                status=Status.timeout,
                reason=timed_out(error).reason,
                at_fault=next(iter(found), ""),
            )
        except WorkerDied as error:
            raise grader_died(error) from error
        assert isinstance(answer, RaceDone)
        return await _with_end(answer.report, racing)

    async def _profile(self, job: Job, progress: Progress) -> Report:
        """Measures kernel activity in a pair that runs nothing else."""
        progress("changing to a new process")
        assert self._grader is not None
        self._grader.has_profiler = True
        async with self._shared_pair_aside():
            return await self._judge_again_if_killed(job, progress)

    async def _judge_again_if_doubtful(self, job: Job, progress: Progress) -> Report:
        """Judges a candidate that crashed once more, if its process had run others: one of them may
        have broken the driver's memory there.
        """
        used = self._pair is not None and self._pair.jobs > 0
        report = await self._judge_again_if_killed(job, progress)
        is_changed = job.only_set is not None  # who asks for many changed kernels asks again itself
        if not used or is_changed or report.status not in _DOUBTFUL or self._killed_twice:
            return report
        progress("it crashed; trying once more in a new process")
        await self._kill_pair()
        return await self._judge_again_if_killed(job, progress)

    async def _judge_again_if_killed(self, job: Job, progress: Progress) -> Report:
        """Blames the candidate when its process is killed twice, and the machine when that happens
        to two candidates in a row.
        """
        report = await self._judge(job, progress)
        if report is None:
            progress("its process was killed; trying once more")
            report = await self._judge(job, progress)
        if report is not None:
            self._killed_twice = False
            return report
        if self._killed_twice:
            raise WorkerError(
                f"the process of two candidates in a row ended twice with {KILLED}, sent from"
                " outside: check whether the machine is short of memory"
            )
        self._killed_twice = True
        return killed_twice()

    async def _judge(self, job: Job, progress: Progress) -> Report | None:
        """The report on one job; None if its runner was killed from outside."""
        assert self._task is not None and self._grader is not None
        is_run = bool(job.cases) and job.purpose is not Purpose.preparation
        runners = await self._provide_pair() if is_run else Runners(used=())
        is_profiled = job.purpose is Purpose.activity
        allowed = (profiling_limits if is_profiled else gpu_limits)(self._task.limits)
        step_s = allowed.step_s if job.launch_s is None else min(allowed.step_s, job.launch_s)
        try:
            answer = await self._grader.ask(
                lambda number: Run(id=number, job=job, runners=runners),
                progress,
                step_s,
                allowed.total_s * job.sittings,
                self._task.limits.reference_s,
                self._kill_pair,
            )
        except StepTimeout as error:
            if error.step.candidate:
                return timed_out(error)
            raise grader_too_slow(error, self._task_path) from error
        except WorkerDied as error:
            raise grader_died(error) from error
        assert isinstance(answer, Done)
        self._grader_ends = answer.is_last
        return await self._report(answer)

    async def _report(self, answer: Done) -> Report | None:
        pair = self._pair
        if pair is None:
            return answer.report
        report = answer.report
        if report.reason.startswith((RUNNER_ENDED, RUNNER_NOT_STARTED)):
            ended = await first_ended([pair])
            how = await ended.how_it_ended()
            if how == KILLED:
                await self._kill_pair()
                return None
            if report.reason == RUNNER_NOT_STARTED:
                raise WorkerError(f"a runner did not start: {how}: {ended.log[-500:]}")
            report = report.model_copy(update={"reason": f"{report.reason}: {how}"})
        report = with_output(report, pair.log)
        if not answer.healthy:
            await self._kill_pair()
        return report

    async def _provide_pair(self) -> Runners:
        """Sees to it that there is a pair for a job, which the grader has."""
        if self._pair is None:
            self._pair = await self._spares.take()
            await self._refill(self._turn.waiting_soon)  # for those that wait for this job's end
        if self._pair.jobs:
            self._pair.clear_log()  # of earlier candidates; what its start said is kept
        self._pair.jobs += 1
        assert self._grader is not None
        return self._grader.runners_of([self._pair], self._spares.pairs)

    async def _spawn_pair(self) -> RunnerPair:
        assert self._task is not None
        pair = RunnerPair(self._fork_server, has_hidden=bool(self._task.hidden_cases))
        await pair.spawn()
        return pair

    async def _provide_grader(self, progress: Progress, may_have_profiler: bool = False) -> None:
        """Sees to it that there is a grader, in which no profiler was unless it may have been."""
        if self._grader is not None and self._grader.has_profiler and not may_have_profiler:
            progress("changing to a process without a profiler")
            await self._kill_all()  # CUPTI stays, and may change times
        if self._grader_ends:
            progress("the device broke in a diagnosis; changing to a new process")
            await self._kill_all()
        if self._grader is None:
            await self._start_grader()

    async def _start_grader(self) -> Environment:
        assert self._task is not None
        grader = GraderProcess(self._fork_server)
        environment = await grader.start(self._task, self._task_path, self._code_folder)
        self._grader, self._grader_ends = grader, False
        return environment

    async def _kill_pair(self) -> None:
        pair, self._pair = self._pair, None
        if pair is not None:
            await self._end([pair])

    async def _end(self, pairs: Sequence[RunnerPair]) -> None:
        """Kills pairs; the grader is told with its next request."""
        self._send_kill(pairs)  # to all before the first wait, which may be cancelled
        for pair in pairs:
            await pair.kill()

    def _send_kill(self, pairs: Sequence[RunnerPair]) -> None:
        if self._grader is not None:
            self._grader.note_ended(pairs)
        for pair in pairs:
            pair.send_kill()

    def _end_later(self, pairs: Sequence[RunnerPair]) -> None:
        """Kills pairs; nobody waits until the driver has cleaned up after them."""
        self._send_kill(pairs)
        for pair in pairs:
            ending = asyncio.create_task(pair.kill())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _kill_all(self) -> None:
        """Kills the grader and all runners that it has."""
        pairs = [*self._own.clear(), *([self._pair] if self._pair else [])]
        pairs += self._spares.clear_handed_over()
        grader, self._grader, self._pair = self._grader, None, None
        if grader is not None:
            grader.send_kill()
        await self._end(pairs)
        if grader is not None:
            await grader.kill()


async def _with_end(report: RaceReport, racing: Mapping[str, RunnerPair]) -> RaceReport:
    """`report` with how the process ended that ended too early; nobody is at fault for a kill."""
    if not report.reason.startswith((RUNNER_ENDED, RUNNER_NOT_STARTED)):
        return report
    side = report.at_fault
    ended = await first_ended([racing[side]] if side else list(racing.values()))
    how = await ended.how_it_ended()
    reason = f"{report.reason}: {how}"
    if report.reason.startswith(RUNNER_NOT_STARTED):
        reason += f": {ended.log[-500:]}"
    return report.model_copy(update={"reason": reason, "at_fault": "" if how == KILLED else side})
