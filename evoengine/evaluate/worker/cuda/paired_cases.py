"""Times the cases of one job, each paired with its baseline: first looks, sittings, and the whole
measurement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evoengine.candidate.moved_bytes import tensor_bytes
from evoengine.evaluate.floor import floors_of, refuse_below_floor
from evoengine.evaluate.worker.backend import Announce, TimedCase, shown
from evoengine.evaluate.worker.check import worst_of_each
from evoengine.evaluate.worker.cuda.examination import Examination
from evoengine.evaluate.worker.cuda.input_pool import timed_sets
from evoengine.evaluate.worker.cuda.paired_timing import (
    ATTEMPTED,
    BRIEF,
    FIRST_LOOK,
    GLANCE,
    SCORED,
    SEARCHED,
    SHOWN,
    SITTING,
    Effort,
    PairedTiming,
)
from evoengine.evaluate.worker.cuda.timed_pairs import TimedPairs
from evoengine.protocols import CompiledCase, Job, Purpose
from evoengine.records import CaseTiming, InputSetCheck, Samples
from evoengine.statistics import median

if TYPE_CHECKING:
    from evoengine.evaluate.worker.cuda.cuda_backend import CudaBackend

PAUSE_S = 0.4  # between two sittings of a case, at least


@dataclass(frozen=True)
class Beginning:
    """The beginning of a case's measurement: enough to see whether the candidate may take a place,
    or the sittings so far.
    """

    case: TimedCase  # with the samples of a first look
    pairs: TimedPairs
    ended: float = 0.0  # the last sitting, on the clock of this process


class PairedCases:
    """The cases of one job that have a baseline."""

    def __init__(self, backend: CudaBackend, job: Job, announce: Announce) -> None:
        self._backend = backend
        self._task = backend.task
        self._scores_cold = backend.scores_cold
        self._job = job
        self._announce = announce
        self._begun = dict[str, Beginning]()  # by case

    def run(self) -> Iterator[TimedCase]:
        """Each case with its times; ends at the first one that has a wrong output.

        With a limit, the objective's cases are looked at first; a candidate whose score is surely
        above it is timed no further. Sittings go round the objective's cases.
        """
        rounds = [self._sit] * (self._job.sittings - 1)
        if self._job.limit is not None:
            rounds = [self._look, *rounds]
        for take in rounds:
            for compiled in self._backend.scored_cases(self._job):
                begun = take(compiled)
                if begun.case.wrong:
                    yield begun.case
                    return
                self._begun[compiled.plan.case] = begun
        if self._is_surely_too_slow():
            yield from (begun.case for begun in self._begun.values())
            return
        for compiled in self._job.cases:
            if compiled.plan.case in self._job.baselines:
                yield self._whole(compiled)

    def _is_surely_too_slow(self) -> bool:
        """Whether the geometric mean of the ratios is surely above the limit."""
        if self._job.limit is None:
            return False
        logs = [begun.pairs.surely_above for begun in self._begun.values()]
        return sum(logs) / len(logs) > math.log(self._job.limit)

    def _look(self, compiled: CompiledCase) -> Beginning:
        """The first samples of the kind that the score is made of; of a cold one, one or two hot
        ones too.
        """
        alive = self._alive(compiled)
        with self._backend.timing_turn(self._job, compiled, self._announce) as examination:
            scored = self._paired(compiled, examination, self._scores_cold)
            samples = scored.run(0.0, FIRST_LOOK, alive)
            hot, wrong = samples, scored.wrong
            if self._scores_cold and not wrong:
                glance = self._paired(compiled, examination, cold=False)
                hot, wrong = glance.run(0.0, GLANCE, alive), glance.wrong
            checks = examination.checks
        if wrong:
            return Beginning(TimedCase(compiled, wrong=wrong, sets=checks), scored.pairs)
        timing = self._timing(compiled, hot, samples if self._scores_cold else None)
        found = TimedCase(compiled, timing=timing, sets=checks, is_coarse=True)
        return Beginning(found, scored.pairs)

    def _sit(self, compiled: CompiledCase) -> Beginning:
        """One sitting more, some time after the last one of the case."""
        before = self._begun.get(compiled.plan.case)
        self._pause(compiled)
        with self._backend.timing_turn(self._job, compiled, self._announce) as examination:
            seen = before.pairs if before else None
            pair = self._paired(compiled, examination, self._scores_cold, seen)
            pair.sit(SITTING, self._alive(compiled))
            checked = worst_of_each(before.case.sets if before else (), examination.checks)
        found = TimedCase(compiled, wrong=pair.wrong, sets=checked)
        return Beginning(found, pair.pairs, ended=time.monotonic())

    def _pause(self, compiled: CompiledCase) -> None:
        """Waits until a sitting may follow the one before, if there was one."""
        before = self._begun.get(compiled.plan.case)
        if before is not None and (left_s := before.ended + PAUSE_S - time.monotonic()) > 0:
            self._announce(f"preparing to time {shown(compiled)}", False)
            time.sleep(left_s)

    def _whole(self, compiled: CompiledCase) -> TimedCase:
        """The case with all its times, which go on with what was begun."""
        case, alive = compiled.plan.case, self._alive(compiled)
        begun = self._begun.get(case)
        self._pause(compiled)
        with self._backend.timing_turn(self._job, compiled, self._announce) as examination:
            samples = []
            for cold in self._kinds:
                seen = begun.pairs if begun and cold == self._scores_cold else None
                pair = self._paired(compiled, examination, cold, seen)
                samples.append(self._samples(pair, self._effort(case, cold), alive))
                if pair.wrong:
                    return TimedCase(compiled, wrong=pair.wrong, sets=examination.checks)
            if wrong := self._refuse_memory(compiled, examination, samples, alive):
                return TimedCase(compiled, wrong=wrong, sets=examination.checks)
            checks = worst_of_each(begun.case.sets if begun else (), examination.checks)
        step = f"comparing the times of {shown(compiled)} with what the device can do"
        self._announce(step, False)
        floors = floors_of(self._task, case, self._job.tier, self._backend.device_peaks())
        for found, floor in zip(samples, floors, strict=False):
            refuse_below_floor(median(found.candidate_us), floor)
        cold_samples = samples[1] if len(samples) > 1 else None
        timing = self._timing(compiled, samples[0], cold_samples, floors.scored(self._task).us)
        return TimedCase(compiled, timing=timing, sets=checks)

    def _samples(self, pair: PairedTiming, effort: Effort, alive: Callable[[], None]) -> Samples:
        if effort is SCORED and self._job.sittings > 1:
            return pair.sit(SITTING, alive)
        return pair.run(self._task.limits.timing_ms / 1000, effort, alive)

    def _timing(
        self,
        compiled: CompiledCase,
        hot: Samples,
        cold: Samples | None,
        floor_us: float | None = None,
    ) -> CaseTiming:
        case = compiled.plan.case
        return CaseTiming(
            case=case,
            baseline=self._job.baselines[case],
            hot=hot,
            cold=cold,
            call_bytes=sum(tensor_bytes(self._task, case)),
            floor_us=floor_us,
        )

    def _alive(self, compiled: CompiledCase) -> Callable[[], None]:
        """Says that the candidate runs now, before each replay."""
        return partial(self._announce, f"timing {shown(compiled)}", True)

    def _paired(
        self,
        compiled: CompiledCase,
        examination: Examination,
        cold: bool,
        pairs: TimedPairs | None = None,
    ) -> PairedTiming:
        """One measurement of a case, hot or cold; `pairs` as of PairedTiming."""
        case, backend = compiled.plan.case, self._backend
        baseline = self._job.baselines[case]
        self._announce("preparing the baseline", False)
        calls = backend.calls(case, examination, baseline)
        replays = backend.all_baselines.replays(case, baseline, calls.most)
        offer = partial(self._offer, compiled)
        sets = timed_sets(backend.pool.sets(case))
        return PairedTiming(examination, replays, sets, calls, cold, pairs, offer)

    def _offer(self, compiled: CompiledCase) -> float:
        """Lets those that wait have the GPU, which is nobody's time; the seconds that it took."""
        token = self._backend.harness.token
        if not token.is_wanted:
            return 0.0
        self._announce(f"preparing to time {shown(compiled)}", False)
        began = time.monotonic()
        token.offer()
        return time.monotonic() - began

    @property
    def _kinds(self) -> tuple[bool, ...]:
        """Which kinds of times are taken, hot (false) and cold: a record always has hot ones."""
        return (False,) if self._job.scored_only and not self._scores_cold else (False, True)

    def _effort(self, case: str, cold: bool) -> Effort:
        other = cold != self._scores_cold
        if case not in self._task.objective.cases or (other and self._job.scored_only):
            return BRIEF
        if other:
            return SHOWN
        if not self._job.scored_only:
            return SCORED
        return ATTEMPTED if self._job.purpose is Purpose.quick_verdict else SEARCHED

    def _refuse_memory(
        self,
        compiled: CompiledCase,
        examination: Examination,
        samples: Sequence[Samples],
        alive: Callable[[], None],
    ) -> tuple[InputSetCheck, ...]:
        """Raises Cheated if a candidate keeps results of a case that is scored; the wrong sets of
        replays on the way.
        """
        case, backend = compiled.plan.case, self._backend
        if case not in self._task.objective.cases:
            return ()
        first = backend.first_sights.get(case)
        timed = samples[self._scores_cold]
        if not backend.runner_is_new or first is None or not first.is_slow(timed):
            return ()
        return backend.refuse_memory(compiled, examination, timed, self._announce, alive)
