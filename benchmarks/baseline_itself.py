"""A baseline timed against itself, as a candidate is timed against it; for `benchmarks.truth`.

    python -m benchmarks.baseline_itself TASK --count N

Opens CUDA in this process. Writes one line of JSON for each measurement: the case, and the ratio of
both sides with its interval, which should hold 1, or why there is none. The cases of the task's
objective come in turn; the baseline is the first that is not compiled.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

from evoengine.candidate.moved_bytes import tensor_bytes
from evoengine.paths import find_task
from evoengine.records import CaseTiming, Frozen, Interval
from evoengine.statistics import median, ratio_interval
from evoengine.task.load import load_task

ROUGH_CALLS, ROUGH_REPLAYS = 2, 3
COMPILED = "torch.compile"


class ItselfMeasured(Frozen):
    """One measurement; without a ratio, `problem` says why."""

    case: str
    ratio: Interval | None = None
    problem: str = ""


def measurements(task_name: str, count: int) -> Iterator[ItselfMeasured]:
    """`count` measurements on device 0."""
    import cupy
    import torch

    from evoengine.evaluate.worker.candidate_failures import CandidateFailure
    from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
    from evoengine.evaluate.worker.cuda.baseline_stand_in import BaselineStandIn
    from evoengine.evaluate.worker.cuda.call_counts import MOST_COLD_CALLS, CallRange, call_range
    from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
    from evoengine.evaluate.worker.cuda.input_pool import InputPool, timed_sets
    from evoengine.evaluate.worker.cuda.paired_timing import SCORED, PairedTiming
    from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
    from evoengine.evaluate.worker.task_functions import TaskFunctions

    path = find_task(task_name)
    task = load_task(path)
    name = next(name for name in task.baselines if name != COMPILED)
    cold = task.objective.cache == "cold"
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    cupy.cuda.Device(0).use()
    stream = torch.cuda.Stream(device)
    torch.cuda.set_stream(stream)  # graphs cannot be captured on the default one
    harness = GpuHarness(0, stream)
    functions = TaskFunctions(task, path)
    pool = InputPool(task, ExpectedOutputs(task, functions, device), lambda: None)

    def replays(case: str, most_calls: int) -> BaselineReplays:
        function, first = task.baselines[name], pool.sets(case)[0]
        return BaselineReplays(harness, functions, function, case, first, most_calls)

    def calls_of(case: str) -> CallRange:
        sets = timed_sets(pool.sets(case))
        rough = replays(case, ROUGH_CALLS)
        taken = [rough.replay(sets[:ROUGH_CALLS], False)[0] for _ in range(ROUGH_REPLAYS)]
        rough.close()
        moved_bytes = sum(tensor_bytes(task, case))
        rough_us = median(taken) / ROUGH_CALLS
        return call_range(moved_bytes, 1, harness.l2_bytes, rough_us, len(sets))

    def measured(case: str) -> ItselfMeasured:
        calls, sets = calls_of(case), timed_sets(pool.sets(case))
        # new buffers each time, as every candidate has
        sides = [replays(case, max(calls.most, MOST_COLD_CALLS)) for _ in range(2)]
        pair = PairedTiming(BaselineStandIn(sides[0]), sides[1], sets, calls, cold)
        try:
            samples = pair.run(task.limits.timing_ms / 1000, SCORED, lambda: None)
        except CandidateFailure as failure:
            return ItselfMeasured(case=case, problem=f"{failure.status}: {failure}")
        finally:
            for side in sides:
                side.close()
        timing = CaseTiming(case=case, baseline=name, hot=samples, cold=samples)
        return ItselfMeasured(case=case, ratio=ratio_interval(timing, cold))

    for case in itertools.islice(itertools.cycle(task.objective.cases), count):
        with harness.token.held():
            found = measured(case)
        yield found


def main() -> None:
    """Measures and writes the lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task")
    parser.add_argument("--count", type=int, default=1, metavar="N", help="measurements")
    options = parser.parse_args()
    for found in measurements(options.task, options.count):
        print(found.model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
