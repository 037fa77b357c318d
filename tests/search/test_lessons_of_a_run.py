"""Lessons of a whole run: the same live, read from its store, and after a kill at any point."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.protocols import Replies, Request
from evoengine.records import Lesson, Proposal
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import STABLE, ScriptedGenerator, make_engine, run_engine
from tests.search.watched_executor import WatchedExecutor

TRIALS = 40


class Teaching(ScriptedGenerator):
    """Each reply has a lesson and applies the best one that its request shows."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, tuple[Lesson, ...]] = {}

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        self.seen[request.trial] = request.lessons
        proposal = await super().propose(request, replies)
        parents = tuple(elite.outcome.trial for elite, _ in request.elites[:1])
        lines = [f"Lesson: change {request.trial}"]
        lines += [f"Applies: L{lesson.number}" for lesson in request.lessons[:1]]
        return proposal.model_copy(update={"insight": "\n".join(lines), "parents": parents})


def search(folder: Path, store: MemoryStore, trials: int = TRIALS) -> Teaching:
    task, generator = load_scale_task(folder), Teaching()
    executor = WatchedExecutor(task, STABLE, delay_s=0.0)
    engine = make_engine(task, store, generator, trials=trials, executor=executor)
    engine.restore()
    assert asyncio.run(run_engine(engine)).complete
    return generator


@pytest.mark.parametrize("stopped_at", [5, 18, 33])
def test_a_resumed_run_sees_the_lessons_of_one_that_was_not_stopped(
    tmp_path: Path, stopped_at: int
) -> None:
    whole = search(tmp_path, MemoryStore())
    store = MemoryStore()
    first = search(tmp_path, store, stopped_at)
    rest = search(tmp_path, store)
    assert {**first.seen, **rest.seen} == whole.seen
    assert any(lesson.confirmed for lesson in whole.seen[TRIALS - 1])
    assert max(len(lessons) for lessons in whole.seen.values()) > 5
