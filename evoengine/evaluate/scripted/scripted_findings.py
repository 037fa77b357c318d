"""What a scripted verdict holds beside its status: checks, times and resources of the size of real
ones.
"""

from __future__ import annotations

import math
from random import Random

from evoengine.records import (
    CaseCheck,
    CaseModel,
    CaseTiming,
    CheckedRun,
    Environment,
    InputSetCheck,
    KernelResources,
    LaunchModel,
    Samples,
    Status,
)
from evoengine.task.schema import Task

BASELINE_US = 12.0  # of every case
FLOOR_US = 4.0  # the least time of every case
SAMPLE_NOISE = 0.01  # relative standard deviation of a sample
HOT_CALLS = 32  # in one sample
TICK_US = 0.032  # the resolution of CUDA events on recent devices
REGISTERS, REGISTERS_ON_TARGET = 40, 80  # of every kernel
MODELLED_TARGET = "l4"
LIMIT = 1e-3  # of the absolute error and of the relative RMSE


def resources(
    kernels: list[str], task: Task, environment: Environment
) -> tuple[tuple[KernelResources, ...], tuple[KernelResources, ...]]:
    """The resources of all kernels, on the device and on the task's target, and the latter
    alone.
    """
    here = tuple(_resources(kernel, environment.arch, REGISTERS) for kernel in kernels)
    if task.target is None or task.target.arch == environment.arch:
        return here, here
    arch = task.target.arch
    on_target = tuple(_resources(kernel, arch, REGISTERS_ON_TARGET) for kernel in kernels)
    return here + on_target, on_target


def _resources(kernel: str, arch: str, registers: int) -> KernelResources:
    return KernelResources(
        kernel=kernel,
        arch=arch,
        registers=registers,
        static_shared_bytes=128,
        dynamic_shared_bytes=4096,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
    )


def checks(
    status: Status, task: Task, environment: Environment, verify: bool, luck: Random
) -> tuple[CaseCheck, ...]:
    """Every case checked, or the first one with an input set that fails; nothing for a candidate
    that never came so far.
    """
    if status not in (Status.wrong_result, Status.correct):
        return ()
    followed = CheckedRun(checks=("races", "bounds"), blocks=8, total_blocks=32)
    checked = followed if environment.is_modelled and not verify else None
    ok = status is Status.correct
    cases = list(task.all_cases) if ok else list(task.all_cases)[:1]
    return tuple(
        CaseCheck(
            case=case,
            hidden=case in task.hidden_cases,
            ok=ok,
            sets=_input_sets(task, ok, luck),
            checked=checked,
        )
        for case in cases
    )


def _input_sets(task: Task, ok: bool, luck: Random) -> tuple[InputSetCheck, ...]:
    """All input sets of a case; of a case that is not `ok`, the last one fails."""
    names = [(distribution, seed) for distribution in task.distributions for seed in task.seeds]
    last = len(names) - 1
    return tuple(
        _input_set(distribution, seed, task, ok or number < last, luck)
        for number, (distribution, seed) in enumerate(names)
    )


def _input_set(distribution: str, seed: int, task: Task, ok: bool, luck: Random) -> InputSetCheck:
    output, tensor = next(iter(task.outputs.items()))
    error = luck.random() * LIMIT / 10 if ok else luck.choice([1.0, math.nan])
    return InputSetCheck(
        distribution=distribution,
        seed=seed,
        ok=ok,
        max_abs=error,
        rel_rmse=error / 10,
        failing_share=0.0 if ok else 0.25,
        worst_index=tuple(luck.randrange(8) for _ in tensor.shape),
        worst_output=output,
        limit_abs=LIMIT,
        limit_rel_rmse=LIMIT,
        trusted_max_abs=luck.random() * LIMIT / 100,
        trusted_rel_rmse=luck.random() * LIMIT / 1000,
        nan_count=5 if math.isnan(error) else 0,
    )


def timings(us: float, task: Task, samples: int, luck: Random) -> tuple[CaseTiming, ...]:
    """Samples of every case, against the first baseline of the task."""
    baseline = next(iter(task.baselines))
    return tuple(
        CaseTiming(
            case=case,
            baseline=baseline,
            hot=_samples(us, HOT_CALLS, samples, luck),
            cold=_samples(us, 1, samples, luck),
            floor_us=FLOOR_US,
        )
        for case in task.cases
    )


def _samples(us: float, calls: int, count: int, luck: Random) -> Samples:
    def side(mean_us: float) -> tuple[float, ...]:
        return tuple(_sample(mean_us, calls, luck) for _ in range(count))

    return Samples(
        candidate_calls=calls,
        baseline_calls=calls,
        candidate_us=side(us),
        baseline_us=side(BASELINE_US),
    )


def _sample(us: float, calls: int, luck: Random) -> float:
    """The time of one call in microseconds, from a whole number of ticks for all `calls`."""
    return round(luck.gauss(us, us * SAMPLE_NOISE) * calls / TICK_US) * TICK_US / calls


def modelled(us: float, task: Task, kernels: list[str]) -> tuple[CaseModel, ...]:
    """The modelled time of every case: `us`, evenly over the kernels."""
    each = us / len(kernels)
    launches = tuple(
        LaunchModel(
            kernel=kernel,
            us=each,
            limiter="tensor",
            bounds_us={"shared": each / 3, "tensor": each / 2},
        )
        for kernel in kernels
    )
    return tuple(
        CaseModel(case=case, target=MODELLED_TARGET, launches=launches, floor_us=FLOOR_US)
        for case in task.cases
    )
