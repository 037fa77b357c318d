"""The baselines: whether each runs and is right on this device, and its time."""

from __future__ import annotations

import torch

from evoengine.candidate.moved_bytes import tensor_bytes
from evoengine.errors import TaskError
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import MOST_COLD_CALLS, call_range, draw_cold
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.input_pool import InputPool, PoolSet, timed_sets
from evoengine.evaluate.worker.cuda.runner.cuda_errors import CUDA_ERRORS
from evoengine.evaluate.worker.passing_faults import may_pass
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import BaselineTimes
from evoengine.statistics import median
from evoengine.task.schema import Task

REPLAYS = 15  # of one baseline
FEW_CALLS = 2  # before its time is known


class Baselines:
    """The baselines of a task on one device."""

    def __init__(
        self, harness: GpuHarness, task: Task, functions: TaskFunctions, pool: InputPool
    ) -> None:
        self._harness = harness
        self._task = task
        self._functions = functions
        self._pool = pool
        self._ready: dict[tuple[str, str], BaselineReplays] = {}  # by case and name
        self._rough_us: dict[tuple[str, str], float] = {}

    def times(self, case: str) -> BaselineTimes:
        """The time of every baseline on `case`, in microseconds a call, with the L2 cache hot or
        cold as the objective says.
        """
        sets = self._pool.sets(case)  # a fault of the reference is not one of every baseline
        times, problems, may_work_later = {}, {}, []
        for name in self._task.baselines:
            try:
                self._refuse_wrong(name, case, sets[0])
                times[name] = self._time(name, case)
            except (TaskError, VirtualMemoryError, *CUDA_ERRORS) as error:
                problems[name] = str(error).strip().splitlines()[0][:200]
                if may_pass(error):
                    may_work_later.append(name)
        found = BaselineTimes(
            median_us=times, problems=problems, may_work_later=tuple(may_work_later)
        )
        self._close_slower(case, found.fastest)
        return found

    def import_compiler(self, case: str, name: str) -> None:
        """Imports what compiles a baseline, which takes seconds without the device."""
        self._functions.import_compiler(self._task.baselines[name], case)

    def is_known(self, case: str, name: str) -> bool:
        """Whether `rough_us` is known."""
        return (case, name) in self._rough_us

    def rough_us(self, case: str, name: str) -> float:
        """The time of one call, to choose the number of calls of a replay."""
        if (case, name) not in self._rough_us:
            replays = self._make(name, case, FEW_CALLS)
            sets = timed_sets(self._pool.sets(case))
            found = [replays.replay(sets[:FEW_CALLS], cold=False)[0] for _ in range(3)]
            self._rough_us[case, name] = median(found) / FEW_CALLS
            replays.close()
        return self._rough_us[case, name]

    def replays(self, case: str, name: str, most_calls: int) -> BaselineReplays:
        """The baseline ready for cold replays and for hot ones of up to `most_calls`; kept for the
        next candidate.
        """
        most_calls = max(most_calls, MOST_COLD_CALLS)
        ready = self._ready.get((case, name))
        if ready is not None and ready.most_calls < most_calls:
            self._ready.pop((case, name)).close()
        if (case, name) not in self._ready:
            self._ready[case, name] = self._make(name, case, most_calls)
        return self._ready[case, name]

    def _make(self, name: str, case: str, most_calls: int) -> BaselineReplays:
        function = self._task.baselines[name]
        first = self._pool.sets(case)[0]
        return BaselineReplays(self._harness, self._functions, function, case, first, most_calls)

    def _time(self, name: str, case: str) -> float:
        cold, sets = self._task.objective.cache == "cold", timed_sets(self._pool.sets(case))
        calls = call_range(
            sum(tensor_bytes(self._task, case)),
            1,
            self._harness.l2_bytes,
            self.rough_us(case, name),
            len(sets),
        )
        replays, taken = self.replays(case, name, calls.most), list[float]()
        for _ in range(REPLAYS):
            count = draw_cold() if cold else calls.draw()
            found = replays.replay(drawn(sets, count), cold)
            taken += found if cold else [found[0] / count]
        return median(taken)

    def _refuse_wrong(self, name: str, case: str, first: PoolSet) -> None:
        """Raises TaskError where a baseline's outputs are wrong, or it changes its inputs."""
        function = self._task.baselines[name]
        outputs = {
            key: value.to(getattr(torch, self._task.outputs[key].dtype))
            for key, value in self._functions.call(function, first.inputs, case).items()
        }
        loosest = max(self._task.tiers, key=lambda tier: self._task.tiers[tier].atol)
        check = compare_outputs(outputs, first.expected, loosest, first.distribution, first.number)
        if not check.ok:
            raise TaskError(
                f"{function} is wrong: {check.worst_output} has a max abs error of"
                f" {check.max_abs:.3g}, allowed {check.limit_abs:.3g}"
            )

    def _close_slower(self, case: str, fastest: str | None) -> None:
        for key in [key for key in self._ready if key[0] == case and key[1] != fastest]:
            self._ready.pop(key).close()
