"""The measurement of the elites at a run's end, which decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from evoengine.candidate.kernel_file import Candidate
from evoengine.events import RunEnded
from evoengine.protocols import (
    FINAL,
    Exhausted,
    Replies,
    Request,
    VerdictRow,
)
from evoengine.records import EndKind, Proposal, Status, Verdict
from evoengine.search.engine import FINALS_AT_ONCE, Engine
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import kernel, load_scale_task
from tests.search.scripted_generator import (
    CLOSE,
    ScriptedGenerator,
    content_of,
    elites_of,
    make_engine,
    run_engine,
)
from tests.search.watched_executor import Asked, WatchedExecutor

TRIALS = 24
TOLD_TO_STOP = RunEnded("told to stop", EndKind.interrupted)
HANG_S = 30.0  # a run that waits for itself is ended after it
Before = Callable[[Asked], Awaitable[None]]


def make(
    folder: Path,
    store: MemoryStore,
    generator: ScriptedGenerator | None = None,
    trials: int = TRIALS,
    before: Before | None = None,
) -> Engine:
    task = load_scale_task(folder)
    executor = WatchedExecutor(task, CLOSE, *([before] if before else []))
    return make_engine(
        task, store, generator or ScriptedGenerator(), trials=trials, executor=executor
    )


def searched(folder: Path, store: MemoryStore, trials: int = TRIALS) -> Engine:
    """A complete run, from what is stored on."""
    engine = make(folder, store, trials=trials)
    engine.restore()
    assert asyncio.run(run_engine(engine)).complete
    return engine


def finals_of(store: MemoryStore) -> list[int]:
    """The trials with a final measurement, in the order in which they were measured."""
    return [
        row.trial
        for row in store._rows.values()
        if isinstance(row, VerdictRow) and row.part == FINAL
    ]


def elites(engine: Engine) -> list[int]:
    return [elite.outcome.trial for elite in engine.population.elites]


def without_finals(store: MemoryStore) -> MemoryStore:
    found = MemoryStore()
    for row in store._rows.values():
        if not (isinstance(row, VerdictRow) and row.part == FINAL):
            found.append(row)
    return found


def test_each_elite_is_measured_once_after_everything_else_by_a_process_of_its_own(
    tmp_path: Path,
) -> None:
    store = MemoryStore()
    engine = searched(tmp_path, store)
    assert finals_of(store) == elites(engine) and len(elites(engine)) == 6
    rows = list(store._rows.values())
    assert all(isinstance(row, VerdictRow) and row.part == FINAL for row in rows[-6:])
    assert [asked.what for asked in engine.executor.asked[-6:]] == ["verify"] * 6
    again = searched(tmp_path, store)
    assert again.executor.asked == [] and finals_of(store) == elites(engine)


def test_a_complete_run_whose_finals_are_missing_measures_them_and_nothing_else(
    tmp_path: Path,
) -> None:
    whole = MemoryStore()
    searched(tmp_path, whole)
    store = without_finals(whole)
    engine = searched(tmp_path, store)
    assert finals_of(store) == elites(engine)
    assert [asked.what for asked in engine.executor.asked] == ["verify"] * 6
    assert content_of(store) == content_of(whole)


def test_a_run_that_is_extended_keeps_its_finals_and_measures_its_new_elites(
    tmp_path: Path,
) -> None:
    store, whole = MemoryStore(), MemoryStore()
    before = elites(searched(tmp_path, store, 12))
    kept = {trial: store.get(VerdictRow, trial, FINAL) for trial in before}
    engine = searched(tmp_path, store, 48)
    after = elites(engine)
    assert set(after) - set(before) and set(before) - set(after), "some are new, some have left"
    assert all(store.get(VerdictRow, trial, FINAL) is row for trial, row in kept.items())
    assert finals_of(store) == before + [trial for trial in after if trial not in before]
    searched(tmp_path, whole, 48)
    assert content_of(store) == content_of(whole) and elites_of(store) == elites_of(whole)


class WrongAtLast(WatchedExecutor):
    """Finds that every candidate has crashed once it has been verified."""

    async def evaluate(self, candidate: Candidate, *given: object, **named: object) -> Verdict:
        verdict = await super().evaluate(candidate, *given, **named)  # type: ignore[arg-type]
        if self.names("verify").count(candidate.plan.name) < 2:
            return verdict
        return verdict.model_copy(update={"status": Status.crash, "score": None})


def test_what_a_final_measurement_finds_decides_nothing(tmp_path: Path) -> None:
    whole, store, task = MemoryStore(), MemoryStore(), load_scale_task(tmp_path)
    searched(tmp_path, whole)
    engine = make_engine(
        task, store, ScriptedGenerator(), trials=TRIALS, executor=WrongAtLast(task, CLOSE)
    )
    assert asyncio.run(run_engine(engine)).complete
    found = [store.get(VerdictRow, trial, FINAL) for trial in finals_of(store)]
    assert found and {row.verdict.status for row in found if row} == {Status.crash}
    assert content_of(store) == content_of(whole) and store.counts() == whole.counts()
    assert elites_of(store) == engine.population.elites == elites_of(whole)
    searched(tmp_path, store, 30)
    searched(tmp_path, whole, 30)
    assert content_of(store) == content_of(whole), "nor in what comes after it"


@pytest.mark.parametrize("measured", [0, 2, 5])
def test_a_run_that_is_stopped_during_its_finals_is_not_complete_and_a_resume_measures_the_rest(
    tmp_path: Path, measured: int
) -> None:
    store, finals = MemoryStore(), list[Asked]()

    async def stopped_run() -> RunEnded:
        stop = asyncio.Event()

        async def before(asked: Asked) -> None:
            if engine.settled == TRIALS:
                finals.append(asked)
                if len(finals) > measured:
                    stop.set()
                    await asyncio.Event().wait()

        engine = make(tmp_path, store, before=before)
        async with asyncio.timeout(HANG_S):
            return await run_engine(engine, stop, stopped=lambda: TOLD_TO_STOP)

    assert asyncio.run(stopped_run()) == TOLD_TO_STOP
    # of two at once, one has waited for ever and the other has begun or not
    assert measured < len(finals) <= measured + FINALS_AT_ONCE
    assert finals_of(store) == [], "rows are stored with the kernel activity, which comes last"
    engine = searched(tmp_path, store)
    assert len(engine.executor.asked) == 6
    assert finals_of(store) == elites(engine)


def test_a_run_that_is_stopped_before_its_end_measures_no_elites(tmp_path: Path) -> None:
    store = MemoryStore()

    async def stopped_run() -> RunEnded:
        stop = asyncio.Event()

        async def before(asked: Asked) -> None:
            if engine.settled == TRIALS - 4:
                stop.set()
                await asyncio.Event().wait()

        engine = make(tmp_path, store, before=before)
        async with asyncio.timeout(HANG_S):
            return await run_engine(engine, stop)

    assert not asyncio.run(stopped_run()).complete
    assert elites_of(store) and finals_of(store) == []


class Ending(ScriptedGenerator):
    """Has nothing left at trial 12, and something for the trials in flight with it."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if request.trial == 12:
            raise Exhausted("nothing is left")
        if request.trial > 12:
            return Proposal(operator="mutate", source=kernel(f"late_{request.trial}"))
        return await super().propose(request, replies)


def test_finals_begin_once_nothing_is_in_flight(tmp_path: Path) -> None:
    store = MemoryStore()

    async def run() -> tuple[RunEnded, list[Asked]]:
        async def before(asked: Asked) -> None:
            if asked.name.startswith("late_"):
                await asyncio.Event().wait()

        engine = make(tmp_path, store, Ending(), before=before)
        async with asyncio.timeout(HANG_S):
            return await run_engine(engine), engine.executor.asked

    ended, asked = asyncio.run(run())
    assert ended == RunEnded("nothing is left", EndKind.exhausted)
    assert {item.name for item in asked if item.name.startswith("late_")}, "some were in flight"
    finals = len(finals_of(store))
    beside = [item.beside for item in asked[-finals:]]
    assert finals and beside[0] == 0 and set(beside) <= set(range(FINALS_AT_ONCE))
    assert all(store.get(VerdictRow, trial) is None for trial in range(12, 16))
