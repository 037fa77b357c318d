"""Mutated replies and headers from proposal to verdict: no exception ends a run of them. Reader,
engine, executor and store are real.

EVOENGINE_FUZZ_REPLIES says how many replies there are in all, 20,000 or in a sample 960. The real
compilers get a hundredth, and a few in a sample too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from evoengine.config import RunConfig
from evoengine.evaluate.compile.includes import check_includes
from evoengine.evaluate.compile.pool import CLANG, NVRTC, CompilePool, toolchain
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.generate.methods.full import METHOD
from evoengine.generate.prompt_templates import Prompts
from evoengine.generate.replay import ReplayGenerator
from evoengine.protocols import ProposalRow, Replies, ReplyRow, Request, VerdictRow
from evoengine.records import Outcome, Proposal, Reply, RunInfo, Status
from evoengine.search.engine import Engine
from evoengine.store.memory_store import MemoryStore
from evoengine.store.sqlite_store import SqliteStore
from evoengine.task.schema import Task
from tests.report.stored_run import run_info
from tests.sampling import Sampling
from tests.scale_task import kernel, load_scale_task, write_task
from tests.search.hostile import CODE, KERNEL, Change, fenced, mutated
from tests.search.scripted_compilers import ScriptedDevice, ScriptedPool

REPLIES = int(os.environ.get("EVOENGINE_FUZZ_REPLIES", "20000"))
PARTS = 4
BATCH = 20  # replies of one run
BOTH = (NVRTC, CLANG)
Test = Callable[..., Any]

changes = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 65535), st.integers(0, 255), st.integers(0, 255)),
    max_size=4,
)
# A base is large, and so are twenty of them: what is drawn is small, what is made of it need not
# be.


def drawn_by(sampling: Sampling, replies: int, few: int) -> Callable[[Test], Test]:
    """So many replies, or `few` in a sample, and no limit on their time. A base is large and so are
    twenty of them, though little is drawn for each.
    """
    limits = settings(
        max_examples=max(1, sampling.count(replies, few) // BATCH),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    return lambda test: seed(sampling.seed)(limits(test))


class Recorded(ReplayGenerator):
    """A replay that also writes the prompt of its last trial, with all that went before in it."""

    def __init__(self, recorded: MemoryStore, prompts: Prompts, last: int) -> None:
        super().__init__(recorded, check_includes)
        self._prompts = prompts
        self._last = last
        self.told: list[Outcome] = []

    def tell(self, outcome: Outcome) -> None:
        self.told.append(outcome)

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if request.trial == self._last:
            assert self._prompts.render(METHOD.choose(request), request).text
        return await super().propose(request, replies)


class Scene:
    """Runs over one task and one executor."""

    def __init__(self, folder: Path, nvrtc: CompilePool | None, clang: CompilePool | None) -> None:
        self.folder = folder
        self.path = write_task(folder / "tasks")
        task = load_scale_task(folder / "tasks")
        self.task: Task = task.model_copy(
            update={"limits": task.limits.model_copy(update={"compile_s": 5.0})}
        )
        self.executor = LocalExecutor(
            self.task,
            str(self.path),
            nvrtc or CompilePool(1, folder),
            ScriptedDevice(self.task),
            clang=clang,
        )
        self.runner = asyncio.Runner()
        self.environment = self.runner.run(self.executor.start()).environment
        self.prompts = Prompts(self.path)
        self.runs = 0

    def judge(self, replies: list[str]) -> list[Status]:
        """What became of the trials of a run of these replies, which is resumed after its end and
        stored as well.
        """
        recorded, kept = MemoryStore(), MemoryStore()
        seeds = [Proposal(operator="seed", source=kernel("scale_a"), label="scale_a")]
        trials = len(seeds) + len(replies)
        for trial, text in enumerate(replies, start=len(seeds)):
            recorded.append(
                ReplyRow(
                    trial, 0, Reply(model="m", prompt="p", text=text.replace("NUMBER", str(trial)))
                )
            )
        told = self._run(recorded, kept, seeds, trials)
        assert told == self._run(recorded, kept, seeds, trials), "a resumed run is the run that was"
        self._store(kept, trials)
        assert [outcome.trial for outcome in told] == list(range(trials))
        return [outcome.status for outcome in told[len(seeds) :]]

    def _run(
        self, recorded: MemoryStore, kept: MemoryStore, seeds: list[Proposal], trials: int
    ) -> list[Outcome]:
        generator = Recorded(recorded, self.prompts, trials - 1)
        engine = Engine(
            task=self.task,
            config=RunConfig(task=str(self.path), trials=trials, generator="replay"),
            environment=self.environment,
            seeds=seeds,
            generator=generator,
            executor=self.executor,
            store=kept,
        )
        engine.restore()
        ended = self.runner.run(engine.run(asyncio.Event()))
        assert ended.complete, ended
        return generator.told

    def _store(self, kept: MemoryStore, trials: int) -> None:
        """On disk in one transaction, and back."""
        self.runs += 1
        path = self.folder / f"{self.runs}.db"
        rows = [
            row
            for trial in range(trials)
            for kind in (ReplyRow, ProposalRow, VerdictRow)
            if (row := kept.get(kind, trial))
        ]
        info: RunInfo = run_info(self.task, self.path, trials=trials)
        with SqliteStore(path, create=True) as store:
            store.append(info, *rows)
            assert all(repr(store.get(type(row), row.trial)) == repr(row) for row in rows)
        path.unlink()

    def close(self) -> None:
        self.runner.run(self.executor.close())
        self.runner.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_replies_become_verdicts(part: int, tmp_path: Path, sampling: Sampling) -> None:
    scene = Scene(
        tmp_path, ScriptedPool(tmp_path / "nvrtc", NVRTC), ScriptedPool(tmp_path / "clang", CLANG)
    )
    seen: set[Status] = set()

    @drawn_by(sampling, REPLIES // PARTS, few=240)
    @given(st.lists(st.tuples(st.integers(0, 255), changes), min_size=BATCH, max_size=BATCH))
    def replies(drawn: list[tuple[int, list[Change]]]) -> None:
        seen.update(scene.judge([mutated(base + part * 67, list(made)) for base, made in drawn]))

    try:
        replies()
    finally:
        scene.close()
    # verdicts are drawn by the source: in a small sample none may be correct
    assert {Status.rejected, Status.compile_error} <= seen, seen


@pytest.mark.parametrize("module", [NVRTC, CLANG], ids=["nvrtc", "clang"])
def test_mutated_sources_become_verdicts_of_the_real_compilers(
    module: str, tmp_path: Path, sampling: Sampling
) -> None:
    problem = asyncio.run(toolchain(module)).problem
    if problem:
        pytest.skip(problem)
    pools = {
        name: CompilePool(1, tmp_path / name, module=name)
        if name == module
        else ScriptedPool(tmp_path / name, name)
        for name in BOTH
    }
    scene = Scene(tmp_path, pools[NVRTC], pools[CLANG])
    bases = [fenced(KERNEL)]
    seen: set[Status] = set()

    @drawn_by(sampling, REPLIES // 200, few=40)
    @given(st.lists(changes, min_size=BATCH, max_size=BATCH))
    def replies(drawn: list[list[Change]]) -> None:
        seen.update(scene.judge([mutated(0, made, CODE, bases, begin="*/\n") for made in drawn]))

    try:
        replies()
    finally:
        scene.close()
    assert Status.compile_error in seen and len(seen) > 1, seen
