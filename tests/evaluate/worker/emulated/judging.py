"""Small kernels through the whole of a verdict on the emulator, from source to model."""

from __future__ import annotations

from pathlib import Path

from evoengine.candidate import kernel_file as candidates
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Verdict
from evoengine.task.load import load_task
from tests.evaluate.kept_fork_server import kept

TASK = """
name: NAME
reference: reference.py:NAME
dims: {N: int}
inputs: {x: {shape: [N], dtype: int32}}
outputs: {out: {shape: ["SIZE"], dtype: int32}}
cases: {small: {N: 65536}}
tiers: {exact: {atol: 0, rel_rmse: 1e-9}}
objective: {cases: [small]}
baselines: {torch: reference.py:NAME}
limits: {emulator_launch_s: 60, emulator_evaluate_s: 100}
budget: {trials: 1}
"""
REFERENCE = """
import torch

def double(x):
    return 2 * x

def sort(x):
    return x.sort().values

def sum(x):
    return x.sum().reshape(1)
"""
SIZES = {"double": "N", "sort": "N", "sum": "1"}


def judged(folder: Path, task_name: str, *sources: str, verify: bool = False) -> list[Verdict]:
    """The verdicts on `sources` of one executor."""
    (folder / "reference.py").write_text(REFERENCE)
    path = folder / f"{task_name}.yaml"
    path.write_text(TASK.replace("NAME", task_name).replace("SIZE", SIZES[task_name]))
    return judged_on(path, *sources, verify=verify)


def judged_on(path: Path, *sources: str, verify: bool = False) -> list[Verdict]:
    """The verdicts on `sources` of one executor for the task in the file at `path`."""

    return verdicts(path, *sources, verify=verify)


def verdicts(path: Path, *sources: str, verify: bool = False) -> list[Verdict]:
    """The verdicts on `sources` of one executor for the task in the file at `path`."""

    async def run() -> list[Verdict]:
        device = kept().device("l4")
        executor = LocalExecutor(
            load_task(path), str(path), CompilePool(1), device, clang=CompilePool(1, module=CLANG)
        )
        try:
            await executor.start()
            return [
                await executor.evaluate(candidates.parse(source), lambda _: None, verify)
                for source in sources
            ]
        finally:
            await executor.close()

    return kept().run(run())
