"""The judge's backend for a CUDA device: examines candidates that a runner replays."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from evoengine.candidate.moved_bytes import tensor_bytes
from evoengine.errors import TaskError
from evoengine.evaluate.floor import DevicePeaks
from evoengine.evaluate.worker.backend import Announce, TimedCase, shown
from evoengine.evaluate.worker.candidate_failures import CandidateFailure, CannotLaunch
from evoengine.evaluate.worker.cuda.activity_measurement import measure_activity
from evoengine.evaluate.worker.cuda.baselines import Baselines
from evoengine.evaluate.worker.cuda.call_counts import (
    WARM_UP_CALLS,
    CallRange,
    call_range,
    draw_cold,
)
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination, UnmapSlots
from evoengine.evaluate.worker.cuda.first_sight import FirstSight, refuse_memory
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.gpu_monitor import GpuMonitor
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.input_pool import (
    InputPool,
    PoolSet,
    one_of_each_distribution,
    timed_sets,
)
from evoengine.evaluate.worker.cuda.measured_peaks import measure_peaks
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.paired_cases import PairedCases
from evoengine.evaluate.worker.cuda.runner.cuda_errors import NO_MEMORY
from evoengine.evaluate.worker.forensics.checked_indices import CheckedIndices
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.protocols import BaselineTimes, CompiledCase, Job, Purpose
from evoengine.records import (
    CaseCheck,
    GpuState,
    InputSetCheck,
    KernelActivity,
    Samples,
)
from evoengine.task.schema import Task

RELAUNCHED_REPLAYS, RELAUNCHED_CALLS = 4, 3  # on the inputs of a wrong call
RELAUNCHES_S = 1.0  # no further replay begins after it
GROWTH_BYTES = 64 * 1024**2  # what the driver itself may keep


class CudaBackend:
    """Implements backend.Backend: a grader on the current device, and its runners."""

    timing_phase = "timing"

    def __init__(
        self,
        task: Task,
        harness: GpuHarness,
        pool: InputPool,
        baselines: Baselines,
        monitor: GpuMonitor,
        unmap_slots: UnmapSlots | None = None,
        map_ahead: Callable[[], None] = lambda: None,
    ) -> None:
        """`unmap_slots` as of Examination. `map_ahead`, which is called whenever a candidate is
        loaded, lets runners that stand by begin to map slots.
        """
        self.task = task
        self.runners: PairClient | None = None
        self._unmap_slots = unmap_slots
        self._map_ahead = map_ahead
        self.harness = harness
        self.pool = pool
        self.all_baselines = baselines
        self._monitor = monitor
        self._peaks: DevicePeaks | None = None
        self.first_sights: dict[str, FirstSight] = {}  # of this job, by case
        self._wrong_call: WrongCall | None = None  # of this job
        self._wrong_set: PoolSet | None = None
        self.scores_cold = task.objective.cache == "cold"
        self.runner_is_new = True  # whether this is the first job of its runners
        # whether a candidate has left device memory in use, e.g. for a deep stack
        self.runner_has_grown = False

    def begin_job(self, runners: PairClient | None) -> None:
        """Forgets the job before; `runners` know whether this is their first one."""
        self.runners = runners
        self.runner_is_new = runners is not None and runners.is_new
        self.runner_has_grown = False
        self.first_sights.clear()
        self._wrong_call = self._wrong_set = None
        self._monitor.clear()

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        # candidates run in another process: only what they leave too little memory for is theirs
        return (*NO_MEMORY, VirtualMemoryError)

    def failure(self, error: Exception) -> CandidateFailure:
        return CannotLaunch(f"its buffers leave no device memory: {error}")

    def sanitize(self, job: Job, announce: Announce) -> None:
        """None: a GPU reports only faults that end the launch."""

    def prepare(self, compiled: CompiledCase, job: Job, announce: Announce) -> None:
        """What a case needs and has not got yet, in several turns at the device: while a second
        grader starts, the first one must not wait for all of it.
        """
        case, token = compiled.plan.case, self.harness.token
        baseline = job.baselines.get(case)
        is_known = baseline is None or self.all_baselines.is_known(case, baseline)
        if self._peaks is not None and self.pool.holds(case) and is_known:
            return
        with token.starting():  # what all this takes is no candidate's of another grader
            if self._peaks is None:
                with token.held():
                    self.device_peaks()  # before a candidate's buffers take memory
            if not self.pool.holds(case):
                self._make_sets(case)
            if baseline is not None and not is_known:
                self.all_baselines.import_compiler(case, baseline)
                with token.held():
                    # builds it, if its time was kept from an earlier run
                    self.all_baselines.rough_us(case, baseline)

    def _make_sets(self, case: str) -> None:
        if case in self.task.all_cases:
            self.pool.sets(case, self.harness.token.shared)
            return
        # A small case takes milliseconds, so one turn is enough. No task file has it: nobody knows
        # whether the reference's indices are within range there.
        with self.harness.token.shared(), CheckedIndices():  # type: ignore[no-untyped-call]
            self.pool.sets(case)

    def check(self, compiled: CompiledCase, job: Job, announce: Announce) -> CaseCheck:
        """Replays, hot and cold in a random order, until every set of the pool was given; of a case
        that is timed afterwards, whose replays are compared as these are, only a few, besides those
        that are never timed; of one that is diagnosed these come first.
        """
        plan = compiled.plan
        waiting = drawn(self.pool.sets(plan.case), len(self.pool.sets(plan.case)))
        baseline = job.baselines.get(plan.case)
        if job.only_set is not None:
            waiting = [item for item in waiting if item.number == job.only_set]
        elif baseline is not None:
            timed = timed_sets(waiting)
            first = [
                *one_of_each_distribution(timed),
                *(item for item in waiting if item not in timed),
            ]
            others = [item for item in waiting if item not in first]
            waiting = [*first, *others] if job.purpose is Purpose.diagnosis else first
        announce(f"loading {shown(compiled)}", True)
        with self._examination(compiled, job.tier) as examination:
            examination.keeps_wrong_call = job.purpose in (Purpose.verdict, Purpose.diagnosis)
            # the time that another process uses the driver or the GPU is not the candidate's
            announce(f"preparing {shown(compiled)}", False)
            calls = self.calls(plan.case, examination, baseline)
            examination.map_slots(WARM_UP_CALLS + calls.most)
            with self.harness.token.shared():
                wrong = self._check_sets(examination, compiled, waiting, calls, announce)
            sets = examination.checks
        return CaseCheck(case=plan.case, hidden=plan.hidden, ok=not wrong, sets=wrong or sets)

    def time(self, job: Job, announce: Announce) -> Iterator[TimedCase]:
        """Time each case that has a baseline in the job, paired with it; compare every replay."""
        return PairedCases(self, job, announce).run()

    def scored_cases(self, job: Job) -> list[CompiledCase]:
        """The objective's cases of a job, in its order."""
        wanted = self.task.objective.cases
        return [it for it in job.cases if it.plan.case in wanted and it.plan.case in job.baselines]

    @contextmanager
    def timing_turn(
        self, job: Job, compiled: CompiledCase, announce: Announce
    ) -> Iterator[Examination]:
        """The candidate, which is loaded and unloaded while others may have the GPU, and the GPU
        alone.
        """
        announce(f"loading {shown(compiled)}", True)
        with self._examination(compiled, job.tier) as examination:
            announce(f"preparing to time {shown(compiled)}", False)
            with self.harness.token.held(), self._monitor.reading():
                yield examination
            announce(f"unloading {shown(compiled)}", True)

    def baselines(self, case: str) -> BaselineTimes:
        with self.harness.token.held():
            return self.all_baselines.times(case)

    def gpu_state(self) -> GpuState | None:
        return self._monitor.state()

    def activity(self, job: Job, announce: Announce) -> tuple[KernelActivity, ...]:
        """Measure each case that has a baseline in the job. Waiting for the GPU is nobody's time,
        but the start of the profiler, some seconds, is within the first step.
        """
        found = []
        for compiled in job.cases:
            baseline = job.baselines.get(compiled.plan.case)
            if baseline is not None:
                announce(f"preparing {shown(compiled)}", False)
                with self.harness.token.held():
                    found.append(self._activity(job, compiled, baseline, announce))
        return tuple(found)

    def wrong_call(self) -> WrongCall | None:
        return self._wrong_call

    def relaunches(
        self, compiled: CompiledCase, job: Job, call: WrongCall, announce: Announce
    ) -> tuple[Relaunch, ...]:
        """Replays of a few calls, all on the inputs of the wrong call, for about RELAUNCHES_S."""
        assert self._wrong_set is not None
        found = list[Relaunch]()
        announce(f"preparing {shown(compiled)}", False)
        with self.harness.token.shared():
            announce(f"launching {shown(compiled)} once more", True)
            start = time.monotonic()
            with self._examination(compiled, job.tier) as examination:
                while len(found) < RELAUNCHED_REPLAYS:
                    found.append(examination.relaunch(self._wrong_set, RELAUNCHED_CALLS))
                    if time.monotonic() - start > RELAUNCHES_S:
                        break
        return tuple(found)

    def _activity(
        self, job: Job, compiled: CompiledCase, baseline: str, announce: Announce
    ) -> KernelActivity:
        case = compiled.plan.case
        sets = timed_sets(self.pool.sets(case))
        alive = partial(announce, f"measuring kernel activity of {shown(compiled)}", True)
        alive()
        with self._examination(compiled, job.tier) as examination:
            announce("preparing the baseline", False)
            calls = self.calls(case, examination, baseline).most
            replays = self.all_baselines.replays(case, baseline, calls)
            measured = measure_activity(compiled, examination, sets, calls, alive)
        announce(f"measuring kernel activity of {baseline}", False)
        return measured.beside(baseline, replays, sets, calls)

    def _check_sets(
        self,
        examination: Examination,
        compiled: CompiledCase,
        waiting: Sequence[PoolSet],
        calls: CallRange,
        announce: Announce,
    ) -> tuple[InputSetCheck, ...]:
        """Replays until all of `waiting` were given; the wrong sets of the first replay that has
        any, () if all are right.
        """
        sets = self.pool.sets(compiled.plan.case)
        # one replay of each kind at least; that of the score first, when no set was seen
        kinds = [not self.scores_cold, self.scores_cold]
        hot = 0  # replays so far
        while waiting or kinds:
            announce(f"checking {shown(compiled)}", True)
            cold = kinds.pop() if kinds else secrets.randbelow(4) == 0
            count = WARM_UP_CALLS + self._draw(calls, hot, cold)
            hot += not cold
            # the first replay is compared with timed ones
            allowed = sets if compiled.plan.case in self.first_sights else timed_sets(sets)
            given = [item for item in waiting if item in allowed][:count]
            waiting = [item for item in waiting if item not in given]
            others = [item for item in drawn(allowed, len(allowed)) if item not in given]
            replayed = [*given, *others[: count - len(given)]]
            examined = examination.replay(drawn(replayed, len(replayed)), cold)
            if examined.wrong:
                return examined.wrong
            if compiled.plan.case not in self.first_sights:
                first = FirstSight(examined.times_us, 1 if cold else count - WARM_UP_CALLS)
                self.first_sights[compiled.plan.case] = first
        return ()

    def _draw(self, calls: CallRange, hot: int, cold: bool) -> int:
        """The calls of an untimed replay, of which `hot` hot ones were before: the first one is
        compared with timed ones, the second has fewer calls than those, each other one any number.
        """
        if cold:
            return draw_cold()
        if hot == 0:
            return calls.draw()
        return calls.draw_fewer() if hot == 1 else calls.draw_any()

    def refuse_memory(
        self,
        compiled: CompiledCase,
        examination: Examination,
        timed: Samples,
        announce: Announce,
        alive: Callable[[], None],
        are_new: bool = False,
    ) -> tuple[InputSetCheck, ...]:
        """Raises Cheated if the candidate is slower on new sets than in `timed`; the wrong sets of
        replays on the way. `are_new` says that the case has sets that the candidate has not seen.
        """
        case, cold = compiled.plan.case, self.scores_cold
        most = len(timed_sets(self.pool.sets(case)))
        count = most if cold else WARM_UP_CALLS + max(timed.calls)
        unseen = [self.pool.sets(case)] if are_new else []

        def renew() -> Sequence[PoolSet]:
            if unseen:
                return drawn(timed_sets(unseen.pop()), count)
            announce(f"computing expected outputs of {shown(compiled)}", False)
            with self.harness.token.taking_memory():  # torch may need more for them
                return drawn(timed_sets(self.pool.renew(case)), count)

        return refuse_memory(examination, renew, timed, cold, alive)

    def renew_sets(self, case: str, announce: Announce) -> None:
        """New sets for a case, made beside what others check."""
        announce(f"computing expected outputs of {case}", False)
        with self.harness.token.starting():
            self.pool.renew(case, self.harness.token.shared)

    def device_peaks(self) -> DevicePeaks:
        if self._peaks is None:
            tiers = self.task.tiers.values()
            units = {tier.unit for tier in tiers} | {self.task.work and self.task.work.unit}
            self._peaks = measure_peaks(self.harness, sorted(unit for unit in units if unit))
        return self._peaks

    def calls(self, case: str, examination: Examination, baseline: str | None) -> CallRange:
        return call_range(
            sum(tensor_bytes(self.task, case)),
            examination.slot_bytes,
            self.harness.l2_bytes,
            self.all_baselines.rough_us(case, baseline) if baseline else None,
            len(timed_sets(self.pool.sets(case))),
        )

    def load(self, compiled: CompiledCase, tier: str, runners: PairClient) -> Examination:
        """A candidate loaded by `runners`; raises CandidateFailure."""
        self._map_ahead()
        return Examination(self.harness, runners, self.task, compiled, tier, self._unmap_slots)

    @contextmanager
    def _examination(self, compiled: CompiledCase, tier: str) -> Iterator[Examination]:
        assert self.runners is not None
        examination = self.load(compiled, tier, self.runners)
        try:
            yield examination
        except TaskError as error:
            if isinstance(error.__cause__, NO_MEMORY):
                raise self.failure(error.__cause__) from None
            raise
        except VirtualMemoryError as error:
            raise self.failure(error) from None
        except CandidateFailure as failure:
            if failure.healthy:
                self._note_growth(examination)
            raise
        if examination.wrong_call is not None:
            self._wrong_call, self._wrong_set = examination.wrong_call, examination.wrong_set
        self._note_growth(examination)

    def _note_growth(self, examination: Examination) -> None:
        if examination.close() > GROWTH_BYTES:
            self.runner_has_grown = True
