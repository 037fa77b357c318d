"""Every seed kernel judged whole: registers, shared memory, errors and latencies on the present
GPU.

    python -m benchmarks.seeds [--json FILE]

Needs a CUDA device; takes about a minute. `max abs N(0,1)` is the largest error against float64
over all cases and seeds with standard normal inputs, `of trusted` the largest error over all
distributions as a multiple of what torch's implementation in the same precision has on the same
inputs; the gate is at 2. Latencies are medians of CUDA-graph replays with a hot cache, next to the
fastest baseline measured in turn with them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.subjects import KERNELS
from benchmarks.table import Row, machine, publish
from evoengine.candidate import kernel_file as candidates
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.paths import find_kernel, find_task
from evoengine.records import CaseTiming, Environment, Verdict
from evoengine.search.make_executor import COMPILERS
from evoengine.statistics import latency_interval, median, paired_ratios
from evoengine.task.load import load_task


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = cuda_devices()
    if not found.names:
        sys.exit(f"this benchmark needs a CUDA device: {found.problem}")
    rows: list[Row] = []
    device = ""
    for task in KERNELS:
        environment, more = asyncio.run(judge(task))
        device, rows = environment.device, rows + more
    publish(machine(device=device, **environment.versions), rows, options.json)


async def judge(name: str) -> tuple[Environment, list[Row]]:
    """One row for every kernel of a task and every case that is timed."""
    path = find_task(name)
    task = load_task(path)
    with tempfile.TemporaryDirectory() as folder:
        executor = LocalExecutor(
            task, str(path), CompilePool(COMPILERS, Path(folder)), cuda_device(0)
        )
        try:
            environment = (await executor.start()).environment
            rows: list[Row] = []
            for kernel in KERNELS[name]:
                candidate = candidates.parse(find_kernel(kernel).read_text(encoding="utf-8"))
                rows += _rows(
                    kernel, await executor.evaluate(candidate, lambda _: None), environment.arch
                )
            return environment, rows
        finally:
            await executor.close()


def _rows(kernel: str, verdict: Verdict, arch: str) -> list[Row]:
    here = [item for item in verdict.resources if item.arch == arch]
    sets = [item for check in verdict.checks for item in check.sets]
    normal = [item.max_abs for item in sets if item.distribution == "normal"]
    ratios = [item.max_abs / item.trusted_max_abs for item in sets if item.trusted_max_abs > 0]
    whole: Row = {
        "kernel": kernel,
        "tier": verdict.tier,
        "status": verdict.status.value,
        "cases": f"{sum(check.ok for check in verdict.checks)}/{len(verdict.checks)}",
        "registers": max((item.registers for item in here), default=None),
        "shared bytes": max(
            (item.static_shared_bytes + item.dynamic_shared_bytes for item in here), default=None
        ),
        "spilled bytes": max((item.spill_store_bytes for item in here), default=None),
        "max abs N(0,1)": f"{max(normal):.2e}" if normal else None,
        "of trusted": f"{max(ratios):.2f}" if ratios else None,
    }
    latencies: Row = {
        f"{timing.case} us": latency_interval(timing).value for timing in verdict.timings
    }
    fastest: Row = {f"{timing.case} x baseline": _ratio(timing) for timing in verdict.timings[:1]}
    return [{**whole, **latencies, **fastest}]


def _ratio(timing: CaseTiming) -> float:
    return median(paired_ratios(timing.hot.candidate_us, timing.hot.baseline_us))


if __name__ == "__main__":
    main()
