"""Times of plans and of single kernels on the present GPU: replays of CUDA graphs of several calls,
back to back.
"""

from __future__ import annotations

from collections.abc import Callable

import cupy
import torch

from benchmarks.gpu_launch import versions
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.compile.pool import CompileResult
from evoengine.evaluate.worker.arena import Arena
from evoengine.evaluate.worker.check import layout_of, poisoned_for
from evoengine.evaluate.worker.cuda.harness.runner_messages import Load
from evoengine.evaluate.worker.cuda.runner.candidate_module import CandidateModule
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.paths import find_task
from evoengine.statistics import median
from evoengine.task.load import load_task

WARM_UP_CALLS = 3
WARM_UP_PRODUCTS = 200  # of large matrices: the clock is at its highest afterwards
# calls in one graph; long ones need fewer for the same resolution
FEWEST, MOST, SAMPLE_US = (
    5,
    32,
    6000.0,
)


def present() -> tuple[dict[str, str], DeviceLimits]:
    """The device with its driver and libraries, and what it allows a kernel."""
    found = versions()
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    limits = DeviceLimits(
        found["arch"], properties["sharedMemPerBlockOptin"], properties["multiProcessorCount"]
    )
    return {**found, "torch": torch.__version__}, limits


def estimate_us(call: Callable[[], None]) -> float:
    """The rough time of one call, in microseconds."""
    for _ in range(WARM_UP_CALLS):
        call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(WARM_UP_CALLS):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1000 / WARM_UP_CALLS


def captured(calls: list[Callable[[], None]]) -> torch.cuda.CUDAGraph:
    """The calls as one graph. torch.cuda.graph() would empty the allocator's cache each time."""
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin(capture_error_mode="thread_local")
    try:
        for call in calls:
            call()
    finally:
        graph.capture_end()
    return graph


def median_us(call: Callable[[], None], replays: int) -> float:
    """The median over `replays` of the time of one call, in microseconds."""
    calls = max(FEWEST, min(MOST, round(SAMPLE_US / max(estimate_us(call), 1e-3))))
    graph = captured([call] * calls)
    graph.replay()
    torch.cuda.synchronize()
    marks = []
    for _ in range(replays):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        marks.append((start, end))
    torch.cuda.synchronize()
    return median([start.elapsed_time(end) * 1000 / calls for start, end in marks])


class Bench:
    """The present GPU, warmed up."""

    def __init__(self, replays: int) -> None:
        self._replays = replays
        self._device = torch.device("cuda")
        # graphs cannot be captured on the default stream
        torch.cuda.set_stream(torch.cuda.Stream())
        busy = torch.randn(4096, 4096, device=self._device, dtype=torch.float16)
        for _ in range(WARM_UP_PRODUCTS):
            busy = (busy @ busy).clamp_(-1, 1)
        torch.cuda.synchronize()

    def median_us(self, task_name: str, plan: CasePlan, compiled: CompileResult) -> float:
        """The time of all launches of a plan on normally distributed inputs, in microseconds."""
        task = load_task(find_task(task_name))
        arena = Arena(layout_of(task, plan), self._device)
        written = poisoned_for(task, plan)
        arena.poison(written)
        arena.fill(make_inputs(task, plan.case, "normal", 0, self._device))
        pointers = {name: arena.pointer(name) for name in arena.tensors}
        module = CandidateModule(
            Load(
                code_path=compiled.code_path,
                functions=compiled.functions,
                launches=plan.launches,
                fills=plan.fills,
                buffers={name: tensor.nbytes for name, tensor in arena.tensors.items()},
                written=frozenset(written),
                silent=True,
            )
        )
        module.reload()
        run, stream = module.bind(pointers), torch.cuda.current_stream().cuda_stream
        return median_us(lambda: run(stream), self._replays)
