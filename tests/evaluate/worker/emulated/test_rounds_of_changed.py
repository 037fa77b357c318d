"""How long changed kernels may run in checked mode follows from their own candidate."""

from __future__ import annotations

from pathlib import Path

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.worker.emulated.emulated_backend import LEAST_FOLLOWED
from evoengine.protocols import Job, Purpose
from evoengine.records import CheckedRun
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
    int i = blockIdx.x * 32 + threadIdx.x, most = 0;
    for (int k = 0; k < ROUNDS; ++k) most = max(most, ((const volatile int*)x)[k * 7 % n]);
    out[i] = most == 0x7fffffff ? 2 * x[i] : x[i] + x[i];
}
"""


def test_how_far_another_candidate_ran_does_not_end_the_changes_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    path = tmp_path / "double.yaml"
    path.write_text(TASK.replace("NAME", "double").replace("SIZE", "N"))

    async def followed(executor: LocalExecutor, rounds: int) -> CheckedRun:
        """Of a kernel that is followed as it is, and then as a change of itself."""
        candidate = kernel_file.parse(KERNEL.replace("ROUNDS", str(rounds)))
        limits = limits_of_arch("sm_89")
        compiled = await executor.compiler.compile(candidate, limits, lambda _: None)
        whole = Job(cases=compiled.cases, tier="exact", purpose=Purpose.checked_mode)
        changed = {"purpose": Purpose.outputs, "only_set": 0}
        for job in (whole, whole.model_copy(update=changed)):
            report = await executor.device.run(job, lambda _: None)
        (check,) = report.checks
        assert check.ok and check.checked is not None
        return check.checked

    async def run() -> list[CheckedRun]:
        executor = LocalExecutor(
            load_task(path),
            str(path),
            CompilePool(1),
            kept().device("l4"),
            clang=CompilePool(1, module=CLANG),
        )
        try:
            await executor.start()
            return [await followed(executor, rounds) for rounds in (3, LEAST_FOLLOWED)]
        finally:
            await executor.close()

    assert all(run.blocks > 0 for run in kept().run(run()))
