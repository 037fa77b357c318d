"""Verdicts and races of simulated kernels: their true times, with noise like that of real ones."""

from __future__ import annotations

from collections import Counter
from random import Random

from benchmarks.simulated_kernels import shown_kernels
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU
from evoengine.evaluate.scripted.scripted_findings import BASELINE_US
from evoengine.records import Interval, Race, RaceResult, Status, Verdict
from evoengine.statistics import exact

# Standard deviations of a score and of a race's ratio, relative. Two scores of one kernel, measured
# in two processes, differ by 1.02 % (docs/measurements/README.md), each thus by 0.72 %; that of a
# race is a third, because what both share cancels.
SCORE_NOISE, RACE_NOISE = 0.0072, 0.0024
HALF_WIDTH = 1.96  # of a 95 % interval, in standard deviations


def true_score(candidate: Candidate) -> float:
    """The time of a simulated kernel / that of the baseline, without noise."""
    return shown_kernels(candidate.source)[0].score(dict(candidate.tunables))


class SimulatedTimes:
    """What a ScriptedExecutor asks for verdicts and races; one for each run.

    The noise follows from `seed`, the kernels, and how often the same was measured before.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._measured: Counter[tuple[str, ...]] = Counter()

    def verdict_of(self, candidate: Candidate, verify: bool) -> Verdict:
        """The verdict on a simulated kernel; its fault is found by the first one."""
        fault = shown_kernels(candidate.source)[0].fault
        status = Status.correct if fault == "none" else Status(fault)
        verdict = Verdict(
            status=status,
            reason="correct on every case" if status is Status.correct else f"simulated {fault}",
            tier=candidate.plan.precision,
            code_digest=candidate.digest,
            phases_s={"total": 0.5},
            environment=SCRIPTED_GPU,
        )
        if status is not Status.correct:
            return verdict
        score = self._noisy(true_score(candidate), SCORE_NOISE, candidate.digest)
        us = Interval(
            value=score.value * BASELINE_US,
            low=score.low * BASELINE_US,
            high=score.high * BASELINE_US,
        )
        return verdict.model_copy(update={"score": score, "latency_us": us})

    def race_of(self, newcomer: Candidate, holder: Candidate) -> Race:
        """The race of two correct simulated kernels."""
        ours, theirs = true_score(newcomer), true_score(holder)
        ratio = self._noisy(ours / theirs, RACE_NOISE, newcomer.digest, holder.digest)
        won = ratio.high < 1
        return Race(
            result=RaceResult.won if won else RaceResult.lost,
            reason="faster" if won else "not faster",
            ratio=ratio,
            newcomer=exact(ours),
            holder=exact(theirs),
        )

    def _noisy(self, value: float, noise: float, *digests: str) -> Interval:
        """`value` as it is measured, with its 95 % interval."""
        luck = Random(derived_seed(self._seed, self._measured[digests], *digests))  # noqa: S311 - must repeat
        self._measured[digests] += 1
        seen, half = value * (1 + luck.gauss(0, noise)), HALF_WIDTH * noise
        return Interval(value=seen, low=seen * (1 - half), high=seen * (1 + half))
