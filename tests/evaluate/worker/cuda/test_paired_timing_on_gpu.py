"""The rules of paired timing with real kernels, CUDA graphs and events on a GPU.

test_paired_timing.py tests the same rules, and the order of the samples, on any machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.cuda_driver import cuda_devices, cuda_facts
from evoengine.evaluate.worker.candidate_failures import Cheated
from evoengine.evaluate.worker.cuda import timing
from evoengine.evaluate.worker.cuda.baselines import time_baselines
from evoengine.evaluate.worker.cuda.paired_timing import PairedTiming
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from evoengine.statistics import median
from evoengine.task.schema import Task
from tests.small import small_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]

N, C = 64, 96
SPIN_US = 2000
REFERENCE = "def forward(x):\n    return x * 2\ndef spoiling(x):\n    return x.mul_(2)\n"
# One block, so that one thread can count launches without a race.
SOURCE = """/* evoengine
name: scale
precision: fp32
launches:
  - {kernel: scale, grid: [1], block: [256], args: [x, out, N, C]}
*/
__device__ unsigned launches, buffers, launches_of[256], first_launch_of[256];
__device__ float* address_of[256];

extern "C" __global__ void scale(float* x, float* out, int n, int c) {
  __shared__ unsigned buffer;
  if (threadIdx.x == 0) {
    for (buffer = 0; buffer < buffers && address_of[buffer] != out; ++buffer) {}
    if (buffer == buffers) {
      address_of[buffers++] = out;
      first_launch_of[buffer] = launches;
    }
    ++launches;
    ++launches_of[buffer];
  }
  __syncthreads();
  BEFORE
  for (int i = threadIdx.x; i < n * c; i += blockDim.x) out[i] = 2.0f * x[i];
  AFTER
}
"""
# The cold buffer is launched for the first time after all hot samples, hot ones at once.
IDLE = {
    "hot": "if (buffer == 0 && launches_of[buffer] > 4) return;",
    "cold": "if (first_launch_of[buffer] > 60 && launches_of[buffer] > 4) return;",
}
SPOIL = "if (threadIdx.x == 0) x[n * c - 1] = 7.0f;"
SPIN = """
  unsigned long long now, end;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
  end += SPIN_US * 1000ull;
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now < end);
""".replace("SPIN_US", str(SPIN_US))
Make = Callable[..., PairedTiming]


@pytest.fixture
def device() -> Iterator[torch.device]:
    """The first GPU, with a current stream on which graphs can be captured."""
    with torch.cuda.stream(torch.cuda.Stream()):
        yield torch.device("cuda", 0)


@pytest.fixture
def expected_outputs(tmp_path: Path, device: torch.device) -> ExpectedOutputs:
    (tmp_path / "scale_rows.py").write_text(REFERENCE)
    task = small_task(
        baselines={"torch.mul": "scale_rows.py:forward", "spoiling": "scale_rows.py:spoiling"}
    )
    return ExpectedOutputs(task, TaskFunctions(task, tmp_path / "t.yaml"), device)


@pytest.fixture
def pair(expected_outputs: ExpectedOutputs, tmp_path: Path) -> Make:
    """Pairs the kernel with these statements and a baseline, ready to be timed."""

    def make(before: str = "", after: str = "", baseline: str = "torch.mul") -> PairedTiming:
        source = SOURCE.replace("BEFORE", before).replace("AFTER", after)
        compiled = compile_plain(expected_outputs.task, source, cuda_facts(0).arch, tmp_path)
        flusher = timing.Flusher(expected_outputs.device)
        return PairedTiming(expected_outputs.task, expected_outputs, flusher, compiled, baseline)

    return make


def compile_plain(task: Task, source: str, arch: str, folder: Path) -> CompiledCase:
    """The cubin of `source` for the case "plain"."""

    async def build() -> CompiledCase:
        pool = CompilePool(1, folder / "cubins")
        try:
            found = await CandidateCompiler(task, pool).compile(
                kernel_file.parse(source), limits_of_arch(arch), lambda _: None
            )
        finally:
            await pool.close()
        assert found.refusal is None
        return next(case for case in found.cases if case.plan.case == "plain")

    return asyncio.run(build())


def test_an_honest_candidate_is_right_in_every_hot_call_and_in_the_cold_one(pair: Make) -> None:
    honest = pair()
    found, checks = honest.run(), honest.check_outputs("fp32")
    assert found.cold is not None and found.cold.candidate_calls == 1
    assert 1 <= found.hot.candidate_calls <= timing.MAX_CALLS
    assert [check.ok for check in checks] == [True] * (found.hot.candidate_calls + 1)


@pytest.mark.parametrize("when", ["hot", "cold"])
def test_a_candidate_that_stops_computing_after_a_while_is_found_hot_and_cold(
    pair: Make, when: str
) -> None:
    idle = pair(before=IDLE[when])
    idle.run()
    checks = idle.check_outputs("fp32")
    wrong = 0 if when == "hot" else len(checks) - 1
    assert [number for number, check in enumerate(checks) if not check.ok] == [wrong]
    assert checks[wrong].nan_count == N * C


def test_an_input_that_a_timed_launch_changes_is_a_cheat(pair: Make) -> None:
    spoiling = pair(after="__syncthreads(); " + SPOIL)
    spoiling.run()
    with pytest.raises(Cheated, match="input 'x' was overwritten in a timed launch"):
        spoiling.check_outputs("fp32")


def test_a_baseline_that_writes_into_its_inputs_condemns_no_candidate(pair: Make) -> None:
    beside_spoiling = pair(baseline="spoiling")
    beside_spoiling.run()
    assert all(check.ok for check in beside_spoiling.check_outputs("fp32"))


def test_a_baseline_that_writes_into_its_inputs_is_left_out_by_name(
    expected_outputs: ExpectedOutputs, device: torch.device
) -> None:
    found = time_baselines(expected_outputs.task, expected_outputs, "plain", timing.Flusher(device))
    assert list(found.median_us) == ["torch.mul"] and found.median_us["torch.mul"] > 0
    assert found.problems["spoiling"].startswith(
        "scale_rows.py:spoiling writes into its input x for case plain: expected it to leave"
    )


def test_a_candidate_never_runs_beside_an_output_of_the_baseline(
    pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[torch.Tensor] = []
    baseline_outputs: list[torch.Tensor] = []
    seen: list[torch.Tensor] = []

    class Watched(timing.Graph):
        """A graph before whose replay the baseline's outputs are compared, in stream order."""

        def __init__(self, calls: list[timing.Call]) -> None:
            super().__init__(calls)
            results: list[Tensors] = [result for result in self._outputs if result]  # type: ignore[misc]  # a launch returns None
            baseline_outputs.extend(value for result in results for value in result.values())
            replay = self.replay

            def watched() -> None:
                if not results:
                    seen.extend(
                        (value == right).all() for value in baseline_outputs for right in expected
                    )
                replay()

            self.replay = watched

    monkeypatch.setattr(timing, "Graph", Watched)
    honest = pair()
    expected += [tensors["x"] * 2 for tensors in honest.inputs]
    honest.run()
    assert seen and not bool(torch.stack(seen).any())


def test_samples_of_both_sides_are_positive_and_of_one_number(pair: Make) -> None:
    found = pair().run()
    for samples in (found.hot, found.cold):
        assert samples is not None
        assert timing.MIN_ROUNDS <= len(samples.candidate_us) == len(samples.baseline_us)
        assert min(*samples.candidate_us, *samples.baseline_us) > 0


def test_a_kernel_that_spins_reads_the_time_that_it_spins(pair: Make) -> None:
    found = pair(after=SPIN).run()
    for samples in (found.hot, found.cold):
        assert samples is not None
        assert 0.5 * SPIN_US < median(samples.candidate_us) < 2 * SPIN_US
        assert median(samples.baseline_us) < 0.5 * SPIN_US


def test_how_many_rounds_come_before_the_last_is_drawn_by_lot(device: torch.device) -> None:
    x = torch.ones(1024, device=device)

    def rounds() -> int:
        side = timing.Side([lambda: x * 2], [])
        return len(timing.measure(side, side, 0.0).candidate_us)

    found = [rounds() for _ in range(30)]
    assert len(set(found)) > 1
    assert min(found) >= timing.MIN_ROUNDS
