"""The code of changes that come next is made while others are launched, and is kept."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.errors import EvoError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.protocols import CompiledCase, Job, Purpose, Report
from evoengine.task.load import load_task
from tests.evaluate.kept_fork_server import kept
from tests.evaluate.worker.emulated.judging import REFERENCE, TASK

KERNEL = """\
/* evoengine
name: double
precision: exact
launches: [{kernel: doubled, grid: ["N // 32"], block: [32], args: [x, out, N]}]
*/
extern "C" __global__ void doubled(const int* x, int* out, long long n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = FACTOR * x[i];
}
"""


def compared(folder: Path, upcoming: bool) -> list[Report]:
    """The reports on a kernel and on one that is announced beside it or not, and whose code is gone
    when its own job begins.
    """
    (folder / "reference.py").write_text(REFERENCE)
    path = folder / "double.yaml"
    path.write_text(TASK.replace("NAME", "double").replace("SIZE", "N"))

    async def built(executor: LocalExecutor, factor: int) -> CompiledCase:
        candidate = kernel_file.parse(KERNEL.replace("FACTOR", str(factor)))
        limits = limits_of_arch("sm_89")
        compiled = await executor.compiler.compile(candidate, limits, lambda _: None)
        own = folder / f"{factor}.ptx"
        shutil.copy(compiled.cases[0].code_path, own)
        return compiled.cases[0].model_copy(update={"code_path": str(own)})

    async def run() -> list[Report]:
        executor = LocalExecutor(
            load_task(path),
            str(path),
            CompilePool(1),
            kept().device("l4"),
            clang=CompilePool(1, module=CLANG),
        )
        try:
            await executor.start()
            wrong, right = await built(executor, 3), await built(executor, 2)
            job = Job(
                cases=(wrong,),
                tier="exact",
                purpose=Purpose.outputs,
                only_set=0,
                candidate="wrong",
                checked=False,
                upcoming=(right,) if upcoming else (),
            )
            first = await executor.device.run(job, lambda _: None)
            await asyncio.to_thread(Path(right.code_path).unlink)
            update = {"cases": (right,), "candidate": "right", "upcoming": ()}
            second = await executor.device.run(job.model_copy(update=update), lambda _: None)
            return [first, second]
        finally:
            await executor.close()

    return kept().run(run())


def test_code_that_was_announced_is_launched_without_being_read_again(tmp_path: Path) -> None:
    first, second = compared(tmp_path, upcoming=True)
    assert [check.ok for check in (*first.checks, *second.checks)] == [False, True]


def test_other_code_is_forgotten_with_its_job(tmp_path: Path) -> None:
    with pytest.raises(EvoError, match=r"2\.ptx"):
        compared(tmp_path, upcoming=False)
