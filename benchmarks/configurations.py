"""Measured times of many configurations of every seed on the present GPU, for `benchmarks.model` to
compare with.

    python -m benchmarks.configurations FILE.json [--scale 0.1]

Needs a CUDA device and CuPy; about five minutes, of which compiling is the most. Configurations of
a seed are chosen to differ in as many tunables as they can. A time is the median of 15 replays of a
CUDA graph with up to 32 calls, inputs N(0,1), hot cache.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured import Measured, MeasuredLaunch, write
from benchmarks.table import machine
from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan, bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.paths import find_kernel, find_task
from evoengine.task.load import load_task
from evoengine.task.schema import Task

SDPA = ("mission", "mission_causal", "long")
# seed: task, cases (all of them for every configuration), how many configurations
SEEDS = {
    "sdpa_mma": ("sdpa_h200", SDPA, 24),
    "sdpa_v2c_wmma": ("sdpa_h200", SDPA, 20),
    "sdpa_fp8": ("sdpa_h200", SDPA, 16),
    "sdpa_v2c_wmma_qk": ("sdpa_h200", SDPA, 20),
    "sdpa_v2b": ("sdpa_h200", SDPA[:2], 20),
    "sdpa_v2c": ("sdpa_h200", SDPA[:2], 20),
    "layernorm": ("layernorm", ("rows", "broad", "few"), 24),
    "matmul_fp16": ("matmul_fp16", ("square", "flat"), 24),
}
REPLAYS = 15
TIMEOUT_S = 100.0  # of one compilation


@dataclass(frozen=True)
class Job:
    """One configuration of a seed on one case."""

    seed: str
    task: str
    tunables: dict[str, int]
    plan: CasePlan
    unit: CompileUnit


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="part of the configurations that is measured"
    )
    options = parser.parse_args()
    found = cuda_devices()
    if not found.names:
        sys.exit(f"this benchmark needs a CUDA device: {found.problem}")
    from benchmarks.replay import Bench, present  # CuPy and a device

    device, limits = present()
    jobs = [job for seed in SEEDS for job in jobs_of(seed, limits, options.scale)]
    with tempfile.TemporaryDirectory() as folder:
        compiled = asyncio.run(compile_all([job.unit for job in jobs], Path(folder)))
        bench = Bench(REPLAYS)
        measured = []
        for job, result in zip(jobs, compiled, strict=True):
            if result.status != "ok":
                print(
                    f"left out: {job.seed} {job.tunables}: {result.status}: {result.log[:300]}",
                    file=sys.stderr,
                )
                continue
            median_us = bench.median_us(job.task, job.plan, result)
            measured.append(
                Measured(
                    job.seed,
                    job.task,
                    job.plan.case,
                    job.tunables,
                    median_us,
                    launches_of(job.plan, result),
                )
            )
    write(
        options.file,
        machine(**device, command=f"python -m benchmarks.configurations {options.file.name}"),
        measured,
    )
    print(json.dumps({"file": str(options.file), "times": len(measured)}))


def jobs_of(seed: str, limits: DeviceLimits, scale: float = 1.0) -> Iterator[Job]:
    """The chosen configurations of a seed, each on all of its cases."""
    task_name, cases, count = SEEDS[seed]
    task = load_task(find_task(task_name))
    candidate = candidates.parse(find_kernel(seed).read_text(encoding="utf-8"))
    found = list(legal(candidate, task, cases, limits))
    chosen = spread([tunables for tunables, _ in found], max(1, round(count * scale)))
    for tunables, plans in found:
        if tunables in chosen:
            for plan in plans:
                kernels = tuple(sorted({launch.kernel for launch in plan.launches}))
                unit = CompileUnit(
                    code=candidate.code,
                    name=f"{seed}.cu",
                    arch=limits.arch,
                    macros=plan.macros,
                    kernels=kernels,
                    timeout_s=TIMEOUT_S,
                )
                yield Job(seed, task_name, tunables, plan, unit)


def legal(
    candidate: Candidate, task: Task, cases: Sequence[str], limits: DeviceLimits
) -> Iterator[tuple[dict[str, int], list[CasePlan]]]:
    """Every choice of tunables that the seed allows on all of the cases, with its plans."""
    names = list(candidate.plan.tunables)
    for values in itertools.product(*candidate.plan.tunables.values()):
        tunables = dict(zip(names, values, strict=True))
        tuned = candidate.tuned(tunables)
        try:
            yield tunables, [bind(tuned, task, case, limits) for case in cases]
        except CandidateError:
            continue


def spread(items: Sequence[dict[str, int]], wanted: int) -> list[dict[str, int]]:
    """The first, then always the one that differs most from all that were taken; ties by even use
    of values.
    """
    taken = [items[0]]
    while len(taken) < min(wanted, len(items)):

        def score(item: dict[str, int]) -> tuple[int, int]:
            alike = [[item[name] == other[name] for name in item] for other in taken]
            return min(len(same) - sum(same) for same in alike), -sum(map(sum, alike))

        taken.append(max((item for item in items if item not in taken), key=score))
    return taken


async def compile_all(units: Sequence[CompileUnit], folder: Path) -> list[CompileResult]:
    """What became of each unit, in order."""
    pool = CompilePool(min(16, os.cpu_count() or 2), folder)
    try:
        return await asyncio.gather(*(pool.compile(unit) for unit in units))
    finally:
        await pool.close()


def launches_of(plan: CasePlan, result: CompileResult) -> tuple[MeasuredLaunch, ...]:
    """The shapes and resources of a plan's launches."""
    of = {item.kernel: item for item in result.resources}
    return tuple(
        MeasuredLaunch(
            launch.grid,
            launch.block,
            of[launch.kernel].registers,
            of[launch.kernel].static_shared_bytes + launch.shared_bytes,
        )
        for launch in plan.launches
    )


if __name__ == "__main__":
    main()
