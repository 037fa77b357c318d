"""From source to verdict on a real GPU: every way to behave has its status."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file as candidates
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.worker.cuda.input_pool import LEAST_SETS, MOST_SETS
from evoengine.paths import find_kernel, find_task
from evoengine.records import Status, Verdict
from evoengine.task.load import load_task
from tests.evaluate.device.kernels import BODIES, source
from tests.evaluate.device.test_contract import TASK
from tests.evaluate.easy_inputs import KERNELS, expect_refusals, write_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]

EXPECTED = {
    "adds": Status.correct,
    "correct": Status.correct,
    "wrong": Status.wrong_result,
    "endless": Status.timeout,
    "illegal access": Status.crash,
    "trap": Status.crash,
    "assert": Status.crash,
    "prints": Status.correct,
    # device printf takes a microsecond a line: 16 million lines are an endless loop
    "floods": Status.timeout,
    "misaligned": Status.crash,
    "leaves a band out": Status.wrong_result,
    "overwrites its input": Status.cheat,
    "writes beyond": Status.cheat,
    "leaves a NaN": Status.wrong_result,
    # its counter begins at 0 in every replay, and no replay has 40 calls
    "idles when it was launched often": Status.correct,
    "overwrites its input when it was launched often": Status.correct,
    "keeps its answers": Status.rejected,
}


def judge(task_path: Path, sources: list[str], verify: bool = False) -> list[Verdict]:
    """The verdicts of one executor, one after the other."""

    async def run() -> list[Verdict]:
        task = load_task(task_path)
        executor = LocalExecutor(task, str(task_path), CompilePool(8), cuda_device(0))
        try:
            await executor.start()
            return [
                await executor.evaluate(candidates.parse(text), lambda _: None, verify)
                for text in sources
            ]
        finally:
            await executor.close()

    return asyncio.run(run())


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    (tmp_path / "scale.py").write_text("def forward(x):\n    return x * 2\n")
    (tmp_path / "scale.yaml").write_text(TASK)
    return tmp_path / "scale.yaml"


def test_every_behaviour_has_its_status_and_the_next_candidate_is_judged_right(scale):
    names = list(BODIES)
    verdicts = judge(scale, [text for name in names for text in (source(name), source("correct"))])
    found = {name: verdicts[2 * index].status for index, name in enumerate(names)}
    assert found == EXPECTED
    assert all(verdict.status is Status.correct for verdict in verdicts[1::2])


def test_more_shared_memory_than_the_device_has_is_over_limits(scale):
    (verdict,) = judge(scale, [source("correct", shared_bytes=300_000)])
    assert verdict.status is Status.over_limits
    assert "300000 bytes of shared memory" in verdict.reason


def test_a_wrong_number_of_arguments_is_rejected_before_a_launch(scale):
    (verdict,) = judge(scale, [source("correct").replace("args: [x, out, N]", "args: [x, out]")])
    assert verdict.status is Status.rejected
    assert "takes 3 parameters, its launch passes 2" in verdict.reason


@pytest.mark.parametrize(
    "name", ["sdpa_v2b", "sdpa_v2c", "sdpa_v2c_wmma_qk", "sdpa_v2c_wmma", "sdpa_fp8", "sdpa_mma"]
)
def test_every_attention_seed_is_correct_on_all_cases_in_its_tier(name):
    (verdict,) = judge(find_task("sdpa_h200"), [find_kernel(name).read_text()])
    assert verdict.status is Status.correct, verdict.reason
    assert len(verdict.checks) == 8
    for check in verdict.checks:
        # the sets of a timed case are those that its replays happened to have
        least = LEAST_SETS if check.hidden else 3
        assert least <= len(check.sets) <= MOST_SETS, check.case
    assert len(verdict.timings) == 5


def test_a_timed_verdict_has_the_state_of_the_gpu_and_our_processes_are_no_others():
    pytest.importorskip("pynvml", reason="needs the package nvidia-ml-py")
    (verdict,) = judge(find_task("layernorm"), [find_kernel("layernorm").read_text()])
    state = verdict.gpu_state
    assert verdict.timings and state is not None
    assert state.sm_clock_mhz is not None and state.temperature_c is not None
    # the grader, its runners and spares are on it meanwhile; the process of
    # these tests is another, if one of them has used the GPU in it
    assert state.other_processes in (None, 0, 1)


@pytest.mark.parametrize("name", ["layernorm", "matmul_fp16", "embedding_bag", "adamw"])
def test_the_other_tasks_have_correct_seeds(name):
    (verdict,) = judge(find_task(name), [find_kernel(name).read_text()])
    assert verdict.status is Status.correct, verdict.reason


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_is_right_on_easy_inputs_only_is_refused(tmp_path: Path, name: str) -> None:
    honest, wrong = KERNELS[name]
    expect_refusals(name, judge(write_task(tmp_path, name), [honest, *wrong]))
