"""Launches one case of a candidate once, for a profiler or a memory checker around this process.

Inputs are drawn on the CPU, and every buffer is an allocation of its own, so that a tool knows
where each ends and what was never written. No result is compared here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import prod
from pathlib import Path

import cupy
import torch
from cupy.cuda import runtime

from evoengine.candidate.binding import ITEM_BYTES
from evoengine.errors import EvoError
from evoengine.evaluate.case_launch import CaseLaunch
from evoengine.evaluate.worker.cuda.harness.runner_messages import Load
from evoengine.evaluate.worker.cuda.runner.candidate_module import CandidateModule
from evoengine.evaluate.worker.cuda.runner.cuda_errors import CUDA_ERRORS
from evoengine.evaluate.worker.drawing_functions import DrawingFunctions
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import shape_of

FAILED = 3


def main(plan: Path) -> int:
    """Launches what the file says; the exit code."""
    try:
        launch(CaseLaunch.model_validate_json(plan.read_bytes()))
    except (EvoError, *CUDA_ERRORS) as error:
        print(f"launcher: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        return FAILED
    return 0


def launch(wanted: CaseLaunch) -> None:
    """Warm-up calls, then one call between the start and the stop of a profiler."""
    tensors = _inputs(wanted)
    cupy.cuda.Device(wanted.ordinal).use()
    runtime.free(0)  # starts the context
    sizes = buffer_bytes(wanted, tensors)
    # exactly as many bytes as the buffer has: a tool then sees the first one beyond
    pointers = {name: runtime.malloc(max(1, size)) for name, size in sizes.items()}
    stream = cupy.cuda.Stream(non_blocking=True)
    module = CandidateModule(_load(wanted, sizes, tensors))
    module.reload()
    run = module.bind(pointers)
    for _ in range(wanted.warm_up_calls):
        _copy(tensors, pointers)
        run(stream.ptr)
        stream.synchronize()
        module.reset_variables(stream.ptr)
    _copy(tensors, pointers)
    runtime.profilerStart()
    run(stream.ptr)
    stream.synchronize()
    runtime.profilerStop()


def buffer_bytes(wanted: CaseLaunch, tensors: Tensors) -> dict[str, int]:
    """The bytes of every input, output and scratch buffer by name."""
    task, plan = wanted.task, wanted.case.plan
    sizes = {name: tensor.numel() * tensor.element_size() for name, tensor in tensors.items()}
    for name, output in task.outputs.items():
        shape = shape_of(output.shape, task.scope(plan.case))
        sizes.setdefault(name, prod(shape) * ITEM_BYTES[output.dtype])
    for name, scratch in plan.scratch.items():
        sizes[name] = prod(scratch.shape) * ITEM_BYTES[scratch.dtype]
    return sizes


def _inputs(wanted: CaseLaunch) -> Tensors:
    functions = TaskFunctions(wanted.task, Path(wanted.task_path))
    return make_inputs(
        wanted.task,
        wanted.case.plan.case,
        wanted.distribution,
        wanted.seed,
        torch.device("cpu"),
        by_function=DrawingFunctions(wanted.task, functions),
    )


def _load(wanted: CaseLaunch, sizes: dict[str, int], tensors: Tensors) -> Load:
    plan = wanted.case.plan
    return Load(
        code_path=wanted.case.code_path,
        functions=wanted.case.functions,
        launches=plan.launches,
        buffers=sizes,
        written=frozenset(sizes.keys() - tensors.keys()),
        fills=plan.fills,
        silent=False,
    )


def _copy(tensors: Tensors, pointers: Mapping[str, int]) -> None:
    """Copies the inputs and waits until they have arrived."""
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        if size:
            runtime.memcpy(pointers[name], tensor.data_ptr(), size, runtime.memcpyHostToDevice)
    runtime.deviceSynchronize()  # the call runs on a stream that does not wait for copies


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
