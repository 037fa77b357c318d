"""Measures kernel activity: how long what a call launches runs, without the gaps between launches.

The figure is shown beside the measured time and decides nothing, so a candidate gains nothing by
what it does to the profiler in its own process. Outputs of profiled calls are compared all the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evoengine.evaluate.worker.backend import NoActivity, shown
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.protocols import CompiledCase
from evoengine.records import KernelActivity, LaunchActivity
from evoengine.statistics import median

LEAST_CALLS = 10  # of each side
# of what is not a kernel, as Kineto names it: "Memset (Device)", "Memcpy DtoD (Device -> Device)"
_FILLS = ("Memset ", "Memcpy ")

Call = tuple[LaunchActivity, ...]


@dataclass(frozen=True)
class CandidateActivity:
    """The candidate's side of one case."""

    case: str
    us: float
    launches: tuple[LaunchActivity, ...]

    def beside(
        self, baseline: str, replays: BaselineReplays, sets: Sequence[PoolSet], most_calls: int
    ) -> KernelActivity:
        """Both sides; raises NoActivity, and TaskError where the baseline fails."""
        calls: list[Call] = []
        while len(calls) < LEAST_CALLS:
            calls += replays.profile(drawn(sets, min(most_calls, len(sets))))
        return KernelActivity(
            case=self.case,
            baseline=baseline,
            candidate_us=self.us,
            baseline_us=median_sum(calls),
            candidate_launches=self.launches,
        )


def measure_activity(
    compiled: CompiledCase,
    examination: Examination,
    sets: Sequence[PoolSet],
    most_calls: int,
    alive: Callable[[], None],
) -> CandidateActivity:
    """The candidate's side, in profiles of `most_calls` calls on different ones of `sets`, whose
    inputs lie in L2; raises NoActivity and CandidateFailure.

    `alive` is called before each profile.
    """
    calls: list[Call] = []
    while len(calls) < LEAST_CALLS:
        alive()
        count = min(WARM_UP_CALLS + most_calls, len(sets))
        profiled, wrong = examination.profile(drawn(sets, count))
        if profiled.problem:
            raise NoActivity(profiled.problem)
        if wrong:
            raise NoActivity(f"an output of a profiled call of {shown(compiled)} was wrong")
        calls += profiled.calls
    kernels = [launch.kernel for launch in compiled.plan.launches]
    launches = median_launches([named(call, kernels) for call in calls])
    return CandidateActivity(compiled.plan.case, median_sum(calls), launches)


def named(call: Call, kernels: Sequence[str]) -> Call:
    """`call` with the plan's names of its kernels; raises NoActivity where it ran others."""
    recorded = [item for item in call if not item.name.startswith(_FILLS)]
    if len(recorded) != len(kernels):
        raise NoActivity(
            f"CUPTI recorded {len(recorded)} kernels of a call, expected {len(kernels)}"
        )
    names = iter(kernels)
    return tuple(
        item if item.name.startswith(_FILLS) else item.model_copy(update={"name": next(names)})
        for item in call
    )


def median_launches(calls: Sequence[Call]) -> Call:
    """The median of each launch over `calls`; raises NoActivity where they differ in launches."""
    names = {tuple(item.name for item in call) for call in calls}
    if len(names) != 1:
        raise NoActivity("CUPTI recorded other launches in one call than in another")
    return tuple(
        LaunchActivity(name=name, us=median([call[place].us for call in calls]))
        for place, name in enumerate(names.pop())
    )


def median_sum(calls: Sequence[Call]) -> float:
    """The median over `calls` of the time of all that one ran, in microseconds."""
    return median([sum(item.us for item in call) for call in calls])
