"""Ways to deceive the verdict, from source to verdict on a GPU, with grader and runners in processes
of their own. The corpus in tests/cheats holds whole kernels; here are the smallest of each kind.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate import kernel_file
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import GraderDevice, cuda_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Status, Verdict
from evoengine.task.load import load_task
from tests.evaluate.worker.cuda.gpu_candidates import (
    CHEATS,
    CRASHES,
    DEEP_STACK,
    ENDLESS,
    FRAMELESS,
    LEFTOVERS,
    PRINTS,
    WRONG,
    source,
)
from tests.evaluate.worker.cuda.test_gpu_candidates import TASK

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]

# Every call of the reference leaves a line in a file.
COUNTING = """
from pathlib import Path

def forward(x):
    with Path(__file__).with_name("calls").open("a") as calls:
        calls.write("called\\n")
    return x * 2

def times_two(x):
    return x * 2
"""
HONEST = source()
Play = Callable[[Callable[["Stage"], Coroutine[Any, Any, Any]]], Any]
MIB = 1024**2
# References of one renewal of one case: a grader computes no others once it has its pool. What is
# renewed is the pool of a case whose first replay took longer than later ones.
RENEWED = 32


class Stage:
    """A started executor over one GPU."""

    def __init__(self, folder: Path, device: GraderDevice, executor: LocalExecutor) -> None:
        self.folder = folder
        self.device = device
        self.executor = executor

    async def judge(self, text: str, verify: bool = False) -> Verdict:
        return await self.executor.evaluate(kernel_file.parse(text), lambda _: None, verify)

    @property
    def references(self) -> int:
        """The number of references that were computed so far."""
        return len((self.folder / "calls").read_text().splitlines())

    @property
    def pids(self) -> tuple[int | None, int | None, int | None]:
        """Grader, runner of shown cases, and runner of hidden ones."""
        grader, pair = self.device._grader, self.device._pair
        return grader and grader.pid, *(pair.pids if pair else (None, None))


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Plays scenes on one stage: grader and baselines start once."""
    folder = tmp_path_factory.mktemp("stage")
    (folder / "scale.py").write_text(COUNTING)
    path = folder / "scale.yaml"
    # the small and the hidden case: others would only take time
    text = TASK.replace(", large: {N: 2097152}", "")
    path.write_text(text.replace("{torch: scale.py:forward}", "{torch: scale.py:times_two}"))
    with asyncio.Runner() as loop:
        task, device = load_task(path), cuda_device(0)
        executor = LocalExecutor(task, str(path), CompilePool(8), device)
        stage = Stage(folder, device, executor)
        try:
            loop.run(executor.start())
            yield lambda scene: loop.run(scene(stage))
        finally:
            loop.run(executor.close())


def test_no_cheat_is_accepted_and_the_grader_outlives_all_of_them(play: Play) -> None:
    expected = {
        **{name: {Status.wrong_result} for name in WRONG},
        **{name: {Status.crash} for name in CRASHES},
        **{name: {Status.cheat} for name in CHEATS},
        FRAMELESS: {Status.correct, Status.crash},  # nothing is found there, or it is out of range
    }
    sources = {**WRONG, **CRASHES, **CHEATS, FRAMELESS: LEFTOVERS[FRAMELESS]}

    async def scene(stage: Stage) -> Any:
        assert (await stage.judge(HONEST)).status is Status.correct
        before = stage.pids
        found = {name: await stage.judge(sources[name]) for name in WRONG}
        # a diagnosis computes the reference again, with changes; what follows has no diagnosis
        references = stage.references
        found |= {name: await stage.judge(sources[name]) for name in sources if name not in WRONG}
        honest = await stage.judge(HONEST)
        return found, honest, before, stage.pids, stage.references - references

    found, honest, before, after, computed = play(scene)
    missed = {
        name: f"{verdict.status}: {verdict.reason}"
        for name, verdict in found.items()
        if verdict.status not in expected[name]
    }
    assert not missed
    assert honest.status is Status.correct, honest.reason
    assert None not in (*before, *after), "an honest kernel leaves its runner alive"
    assert runners_alone_are_others(before, after)
    assert computed <= RENEWED, "the grader keeps its pool"


def test_an_endless_kernel_is_a_timeout_and_costs_the_runner_alone(play: Play) -> None:
    async def scene(stage: Stage) -> Any:
        await stage.judge(HONEST)
        before, references = stage.pids, stage.references
        began = time.monotonic()
        endless = await stage.judge(ENDLESS)
        ended = time.monotonic()
        honest = await stage.judge(HONEST + "\n// once more\n")
        seconds = ended - began, time.monotonic() - ended
        return endless, honest, before, stage.pids, stage.references - references, seconds

    endless, honest, before, after, computed, seconds = play(scene)
    assert endless.status is Status.timeout and "1.5 s" in endless.reason
    assert honest.status is Status.correct, honest.reason
    assert None not in (*before, *after)
    assert runners_alone_are_others(before, after) and computed <= RENEWED
    assert seconds[0] < 10 and seconds[1] < 15, seconds


def test_a_verification_is_by_another_runner_and_the_same_grader(play: Play) -> None:
    async def scene(stage: Stage) -> Any:
        first = await stage.judge(HONEST)
        before, references = stage.pids, stage.references
        second = await stage.judge(HONEST, verify=True)
        (kept,) = stage.device._own._pairs.values()
        after = (stage.pids[0], *kept.pids)
        assert stage.pids == before, "first verdicts go on in their own runners"
        return first, second, before, after, stage.references - references

    first, second, before, after, computed = play(scene)
    assert first.status is second.status is Status.correct
    assert None not in (*before, *after)
    assert runners_alone_are_others(before, after) and computed <= RENEWED


def test_what_is_printed_in_a_hidden_case_is_not_shown(play: Play) -> None:
    (verdict,) = play(lambda stage: _all(stage, PRINTS))
    assert verdict.status is Status.wrong_result
    assert verdict.reason == "is wrong in a hidden case" and not verdict.detail


def test_device_memory_is_what_it_was_after_a_deep_stack(play: Play) -> None:
    async def scene(stage: Stage) -> Any:
        await stage.judge(HONEST)
        before = await _settled_free_bytes()
        verdict = await stage.judge(DEEP_STACK)
        await stage.judge(HONEST + "\n// once more\n")
        return verdict, before, await _settled_free_bytes()

    verdict, before, after = play(scene)
    assert verdict.status is Status.correct, verdict.reason
    assert after > before - 256 * MIB, f"{(before - after) / MIB:.0f} MiB are missing"


def runners_alone_are_others(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether the grader is the same, and each of two pairs of runners is a process of its own."""
    return before[0] == after[0] and len({*before, *after}) == 5


async def _all(stage: Stage, *sources: str) -> list[Verdict]:
    return [await stage.judge(text) for text in sources]


async def _settled_free_bytes() -> int:
    """The free memory of the device, once the processes that start have started."""
    import cupy

    earlier = 0
    for _ in range(20):
        free = int(cupy.cuda.runtime.memGetInfo()[0])
        if abs(free - earlier) < 8 * MIB:
            break
        earlier = free
        await asyncio.sleep(1.0)
    return free
