"""One seed on one case on the emulator, measured in this process: prints its figures as one line of
JSON.

    python -m benchmarks.emulator_child TASK KERNEL CASE [WITHOUT]

WITHOUT is the beginning of the names of CPU features to do without. A process of its own for each,
so that the peak of its memory is this kernel's; benchmarks.emulator starts them.
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import CasePlan, bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.emulator.device import Checks, Emulator
from evoengine.emulator.front.clang import compile_cuda
from evoengine.emulator.run.codegen_pool import codegen_pool
from evoengine.evaluate.worker.check import layout_of
from evoengine.evaluate.worker.emulated.checked_mode import sample
from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram, LoadedModule
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.paths import find_kernel, find_task
from evoengine.protocols import CompiledCase
from evoengine.task import schema as tasks
from evoengine.task.schema import Task

ARCH, TARGET = "sm_89", "l4"
REPEATS = 5
BUDGET_S = 2.0  # of repeats: what takes longer is run less often, once at least
SAMPLED_BLOCKS = 8
WARM_UP = "define void @nothing() {\n ret void\n}"

Figures = dict[str, float | int | str]


def median_s(work: Callable[[], object]) -> float:
    """The median of a few runs."""
    samples: list[float] = []
    while not samples or (len(samples) < REPEATS and sum(samples) < BUDGET_S):
        started = time.perf_counter()
        work()
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def elapsed_s(work: Callable[[], object]) -> float:
    """How long one run takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(task_name: str, kernel: str, case: str, without: Sequence[str] = ()) -> Figures:
    """Every figure of one seed and case; raises Finding where the emulator cannot run it."""
    path = find_task(task_name)
    task = tasks.load(path)
    candidate = candidates.parse(find_kernel(kernel).read_text(encoding="utf-8"))
    plan = bind(candidate, task, case, limits_of_arch(ARCH))
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        compiled = compile_plan(candidate, plan, Path(folder))
        figures["clang_s"] = time.perf_counter() - started
        emulator = Emulator(TARGET, without=tuple(without))
        # enough for everything
        program = LoadedModule(emulator, lambda: None).program(compiled, rounds=2.0**40)
        with EmulatedArena(layout_of(task, plan), emulator) as arena:
            inputs = make_inputs(task, case, "normal", 0, torch.device("cpu"))
            arena.fill(inputs)
            figures |= time_runs(
                program, emulator, {name: arena.pointer(name) for name in arena.tensors}
            )
            figures["rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            figures["one_thread_s"] = time_one_thread(task, compiled, inputs, without)
            functions = TaskFunctions(task, path)
            outputs = {name: arena.tensors[name] for name in task.outputs}
            figures["error"] = error_of(outputs, functions.reference(inputs, case))
            figures |= time_peer(task, functions, inputs, case, emulator.threads)
    return figures


def compile_plan(candidate: Candidate, plan: CasePlan, folder: Path) -> CompiledCase:
    """The plan with clang's PTX of its kernels, written to `folder`."""
    kernels = sorted({launch.kernel for launch in plan.launches})
    compiled = compile_cuda(
        candidate.code, name="candidate.cu", macros=plan.macros, arch=ARCH, kernels=kernels
    )
    code = folder / "candidate.ptx"
    code.write_text(compiled.ptx, encoding="utf-8")
    return CompiledCase(plan=plan, code_path=str(code), functions=dict(compiled.functions))


def time_runs(program: EmulatedProgram, emulator: Emulator, pointers: dict[str, int]) -> Figures:
    """Fast mode with one thread and with all, checked mode on some blocks and on all; the outputs
    are a fast run's.
    """
    launches = program.compiled.plan.launches
    first = {launch: sample(math.prod(launch.grid), 1)[:1] for launch in launches}
    some = {launch: sample(math.prod(launch.grid), SAMPLED_BLOCKS) for launch in launches}

    def run(checks: Checks | None = None, blocks: dict[Any, list[int]] | None = None) -> None:
        for launch in launches:
            program.run(launch, pointers, checks, blocks[launch] if blocks else None)

    figures: Figures = {
        "threads": emulator.threads,
        "blocks": sum(math.prod(launch.grid) for launch in launches),
    }
    # starts a child: that is done once for many kernels
    codegen_pool().compile(WARM_UP, emulator.jit.cpu, emulator.jit.features, 0)
    figures["jit_s"] = elapsed_s(lambda: run(None, first)) - elapsed_s(lambda: run(None, first))
    figures["checked_jit_s"] = elapsed_s(lambda: run(Checks(), first)) - elapsed_s(
        lambda: run(Checks(), first)
    )
    figures["sampled_s"] = median_s(lambda: run(Checks(), some))
    figures["checked_s"] = elapsed_s(lambda: run(Checks()))
    run()  # every page touched
    figures["run_s"] = median_s(run)
    used = time.process_time()
    run()
    # of all threads: what other programs leave of the cores does not count
    figures["processor_s"] = time.process_time() - used
    return figures


def time_one_thread(
    task: Task, compiled: CompiledCase, inputs: Tensors, without: Sequence[str]
) -> float:
    """Seconds of a run of the whole grid on one core."""
    emulator = Emulator(TARGET, 1, without=tuple(without))
    program = LoadedModule(emulator, lambda: None).program(compiled, rounds=2.0**40)
    with EmulatedArena(layout_of(task, compiled.plan), emulator) as arena:
        arena.fill(inputs)
        pointers = {name: arena.pointer(name) for name in arena.tensors}

        def run() -> None:
            for launch in compiled.plan.launches:
                program.run(launch, pointers)

        run()  # every page touched
        return median_s(run)


def error_of(outputs: Tensors, reference: Tensors) -> float:
    """The largest absolute error against float64 over all outputs; nan where one is nan."""
    return max(
        float((outputs[name].double() - right).abs().max()) for name, right in reference.items()
    )


def time_peer(
    task: Task, functions: TaskFunctions, inputs: Tensors, case: str, threads: int
) -> Figures:
    """torch's own implementation on this CPU, in the inputs' precision and in float32."""
    torch.set_num_threads(threads)
    name = next(tier.trusted for tier in task.tiers.values() if tier.trusted)
    wide = {
        key: value.float() if value.is_floating_point() else value for key, value in inputs.items()
    }
    timed = {}
    for key, tensors in (("peer_s", inputs), ("peer_float32_s", wide)):
        peer = functions.bind(name, tensors, case)
        peer()
        timed[key] = median_s(peer)
    return {"peer": name, **timed}


def main() -> None:
    task, kernel, case, *without = sys.argv[1:]
    figures = measure(task, kernel, case, without)
    sys.stdout.write(json.dumps({**figures, "cpus": len(os.sched_getaffinity(0))}) + "\n")


if __name__ == "__main__":
    main()
