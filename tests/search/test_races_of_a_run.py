"""Races, promising trials and verifications of a search: what is decided by what, and when."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR, SCRIPTED_GPU
from evoengine.events import Event, TrialSettled
from evoengine.population.elites import Population
from evoengine.protocols import (
    FINAL,
    FIRST,
    VERIFY,
    ProposalRow,
    RaceRow,
    Replies,
    Request,
    VerdictRow,
)
from evoengine.records import TIMING_VERSION, Proposal, RaceResult, outcome_of
from evoengine.search.engine import Engine
from evoengine.search.settled_trials import fold_into_population
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import kernel, load_scale_task
from tests.search.scripted_generator import (
    CLOSE,
    ScriptedGenerator,
    content_of,
    elites_of,
    make_engine,
    races_of,
    run_engine,
    verdicts_of,
)
from tests.search.watched_executor import Asked, WatchedExecutor

TRIALS = 40
ALL_CORRECT = replace(CLOSE, correct_share=1.0, unstable_share=0.0)
HANG_S = 30.0  # a run that waits for itself is ended after it


class Numbered(ScriptedGenerator):
    """Proposes a kernel that is named after its trial."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        return Proposal(operator="mutate", source=kernel(f"trial_{request.trial}"))


def searched(folder: Path, store: MemoryStore, delay_s: float = 0.0) -> Engine:
    task = load_scale_task(folder)
    executor = WatchedExecutor(task, CLOSE, delay_s=delay_s)
    engine = make_engine(task, store, ScriptedGenerator(delay_s), executor=executor)
    asyncio.run(run_engine(engine))
    return engine


def populations(store: MemoryStore) -> list[Population]:
    """The elites after each settled trial."""
    population, after = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION), []
    for _ in fold_into_population(store.trials(), population):
        after.append(population.copy())
    return after


def test_every_race_is_stored_before_its_trial_is_settled_and_the_store_tells_the_same_elites(
    tmp_path: Path,
) -> None:
    store, settled = MemoryStore(), 0

    def observe(event: Event) -> None:
        nonlocal settled
        if isinstance(event, TrialSettled):
            settled += 1
            found = populations(store)
            assert len(found) >= settled, "what is stored settles the trial"
            assert found[settled - 1].elites == event.elites

    engine = make_engine(
        load_scale_task(tmp_path), store, ScriptedGenerator(), rule=CLOSE, observe=observe
    )
    asyncio.run(run_engine(engine))
    assert settled == TRIALS and elites_of(store) == engine.population.elites
    assert {row.race.result for row in races_of(store)} == set(RaceResult)


def test_races_are_against_holders_of_the_moment_that_were_verified_before(tmp_path: Path) -> None:
    store = MemoryStore()
    searched(tmp_path, store)
    after = populations(store)
    for row in races_of(store):
        holders = [elite.outcome for elite in after[row.trial - 1].elites]
        held = next(outcome for outcome in holders if outcome.trial == row.holder)
        assert held.tier == store.get(VerdictRow, row.trial).verdict.tier
        assert row.began <= row.ended and row.number < len(dict(store.trials())[row.trial].races)


def test_each_race_is_run_once_and_a_stored_one_is_not_run_again(tmp_path: Path) -> None:
    whole = MemoryStore()
    engine = searched(tmp_path, whole)
    races = races_of(whole)
    assert len(engine.executor.names("race")) == len(races)
    for left_out in range(0, len(races), 4):
        store, kept = MemoryStore(), {(row.trial, row.number) for row in races[:left_out]}
        for row in whole._rows.values():
            if not isinstance(row, RaceRow) or (row.trial, row.number) in kept:
                store.append(row)
        executor = WatchedExecutor(load_scale_task(tmp_path), CLOSE)
        engine = make_engine(
            load_scale_task(tmp_path), store, ScriptedGenerator(), executor=executor
        )
        engine.restore()
        asyncio.run(run_engine(engine))
        assert {asked.what for asked in executor.asked} == {"race"}
        assert len(executor.asked) == len(races) - left_out
        assert races_of(store) == races and content_of(store) == content_of(whole)


@pytest.mark.parametrize("delay_s", [0.0, 0.004])
def test_whether_a_trial_is_promising_is_decided_by_the_elites_up_to_its_horizon(
    tmp_path: Path, delay_s: float
) -> None:
    store, task = MemoryStore(), load_scale_task(tmp_path)
    engine = make_engine(task, store, Numbered(delay_s), delay_s, rule=ALL_CORRECT)
    asyncio.run(run_engine(engine))
    after, none = populations(store), Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    promising, otherwise, early = 0, 0, 0
    for trial in range(TRIALS):
        row, proposal = store.get(VerdictRow, trial), store.get(ProposalRow, trial).proposal
        outcome, horizon = outcome_of(trial, proposal, row.verdict), engine.horizon(trial)
        elites = after[horizon] if horizon >= 0 else none
        before = after[trial - 1] if trial else none
        assert row.promising == elites.would_take_place(outcome), trial
        promising += row.promising
        otherwise += row.promising != before.would_take_place(outcome)
        verified = store.get(VerdictRow, trial, VERIFY) is not None
        early += verified and not before.would_take_place(outcome)
        assert verified or not (row.promising and before.would_take_place(outcome))
        assert row.promising or not verified
    assert promising and otherwise, "the elites before some trial would have decided otherwise"
    assert early < otherwise, "most that would not take a place in the end are not verified early"


def test_the_bar_of_a_first_verdict_is_that_of_the_horizon(tmp_path: Path) -> None:
    store = MemoryStore()
    engine = searched(tmp_path, store, delay_s=0.002)
    after = populations(store)
    bars = {asked.name: asked.bar for asked in engine.executor.asked if asked.what == "first"}
    known, otherwise, coarse = 0, 0, 0
    for trial in range(3, TRIALS):
        proposal, verdict = store.get(ProposalRow, trial).proposal, store.get(VerdictRow, trial)
        if proposal.source is None:
            continue
        name = next(name for name in bars if f"// {name}\n" in proposal.source)
        tier = verdict.verdict.tier
        assert bars[name] == after[engine.horizon(trial)].bar(tier), trial
        known += bars[name] is not None
        otherwise += bars[name] != after[trial - 1].bar(tier)
        coarse += verdict.verdict.is_coarse
        if verdict.verdict.is_coarse:
            assert verdict.verdict.score.low > bars[name] and not verdict.promising
    assert known and otherwise and coarse
    assert all(asked.bar is None for asked in engine.executor.asked if asked.what == "verify")


def test_races_verdicts_and_elites_do_not_depend_on_timing(tmp_path: Path) -> None:
    slow, fast = MemoryStore(), MemoryStore()
    engines = searched(tmp_path, slow, delay_s=0.004), searched(tmp_path, fast)
    assert content_of(slow) == content_of(fast)
    assert verdicts_of(slow) == verdicts_of(fast) and races_of(slow) == races_of(fast)
    assert engines[0].population.elites == engines[1].population.elites
    orders = [engine.executor.names("first") for engine in engines]
    assert orders[0] != orders[1], "the timing was another one"


def test_a_trial_is_verified_while_the_one_before_it_is_still_verified(tmp_path: Path) -> None:
    """If the verification waited for its turn to settle, both would wait for ever."""
    store = MemoryStore()

    async def run() -> list[Asked]:
        verified = asyncio.Event()

        async def before(asked: Asked) -> None:
            if asked.name == "seed1" and asked.what == "verify":
                verified.set()
            if asked.name == "seed0" and asked.what == "verify":
                await verified.wait()

        executor = WatchedExecutor(load_scale_task(tmp_path), ALL_CORRECT, before)
        task = load_scale_task(tmp_path)
        engine = make_engine(task, store, Numbered(), trials=6, executor=executor)
        async with asyncio.timeout(HANG_S):
            ended = await run_engine(engine)
        assert ended.complete
        return executor.asked

    asked = asyncio.run(run())
    order = [(item.name, item.what) for item in asked]
    assert ("seed0", "verify") in order
    rows = list(store._rows.values())
    races = [row.trial for row in rows if isinstance(row, RaceRow)]
    assert races == sorted(races) and races, "races are run in the order of trials all the same"


def test_where_times_are_modelled_nothing_is_raced_or_measured_at_the_end(tmp_path: Path) -> None:
    store, task = MemoryStore(), load_scale_task(tmp_path)
    executor = WatchedExecutor(task, CLOSE, environment=SCRIPTED_EMULATOR)
    engine = make_engine(
        task, store, ScriptedGenerator(), executor=executor, environment=SCRIPTED_EMULATOR
    )
    assert asyncio.run(run_engine(engine)).complete
    assert engine.population.elites and executor.names("race") == []
    assert all(store.get(VerdictRow, trial, FINAL) is None for trial in range(TRIALS))
    firsts = [store.get(VerdictRow, trial, FIRST) for trial in range(TRIALS)]
    assert {row.promising for row in firsts} == {True, False}


@pytest.mark.parametrize("stopped_at", [1, 4, 9])
def test_a_run_that_is_stopped_during_a_race_runs_it_again_and_no_other(
    tmp_path: Path, stopped_at: int
) -> None:
    whole = MemoryStore()
    searched(tmp_path, whole)

    async def stopped_run(store: MemoryStore) -> bool:
        stop, races = asyncio.Event(), 0

        async def before(asked: Asked) -> None:
            nonlocal races
            races += asked.what == "race"
            if asked.what == "race" and races == stopped_at:
                stop.set()
                await asyncio.Event().wait()

        task = load_scale_task(tmp_path)
        executor = WatchedExecutor(task, CLOSE, before)
        engine = make_engine(task, store, ScriptedGenerator(), executor=executor)
        async with asyncio.timeout(HANG_S):
            return (await run_engine(engine, stop)).complete

    store = MemoryStore()
    assert not asyncio.run(stopped_run(store))
    assert races_of(store) == races_of(whole)[: stopped_at - 1]
    executor = WatchedExecutor(load_scale_task(tmp_path), CLOSE)
    engine = make_engine(load_scale_task(tmp_path), store, ScriptedGenerator(), executor=executor)
    engine.restore()
    assert asyncio.run(run_engine(engine)).complete
    assert len(executor.names("race")) == len(races_of(whole)) - stopped_at + 1
    assert races_of(store) == races_of(whole) and content_of(store) == content_of(whole)
