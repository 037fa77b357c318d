"""A run that is cut off after any of its commits goes on as the run that was not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.evaluate.scripted.scripted_verdict import scripted_verdict
from evoengine.population.elites import Population
from evoengine.protocols import (
    FINAL,
    FIRST,
    Generator,
    ProposalRow,
    RaceRow,
    Replies,
    Request,
    Row,
    VerdictRow,
)
from evoengine.records import TIMING_VERSION, Proposal, Status, Verdict
from evoengine.search.engine import Engine
from evoengine.search.settled_trials import fold_into_population
from evoengine.store.memory_store import MemoryStore
from tests.sampling import Entry, Sampling
from tests.scale_task import kernel, load_scale_task
from tests.search.scripted_generator import (
    CLOSE,
    STABLE,
    ScriptedGenerator,
    SometimesCopying,
    content_of,
    elites_of,
    make_engine,
    races_of,
    run_engine,
    tuning,
    verdicts_of,
)
from tests.search.watched_executor import Asked, WatchedExecutor

TRIALS = 24


def search(
    folder: Path,
    store: MemoryStore,
    generator: Generator,
    trials: int = TRIALS,
    method: str = "full",
) -> list[Asked]:
    """Runs what is left of a run; returns what its executor was asked for."""
    task = load_scale_task(folder)
    executor = WatchedExecutor(task, CLOSE, delay_s=0.001)
    engine = make_engine(task, store, generator, trials=trials, executor=executor, method=method)
    engine.restore()
    assert asyncio.run(run_engine(engine)).complete
    return executor.asked


class OnIslands(ScriptedGenerator):
    """What it proposes depends on the islands of a request, too."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        proposal = await super().propose(request, replies)
        assert request.islands or not request.elites
        seen = derived_seed(
            *(
                (island.tier, island.founder, island.trials_without_gain, item.outcome.trial)
                for island in request.islands
                for item in (*(evaluated for _, evaluated in island.elites), *island.recent)
            )
        )
        parents = tuple(island.elites[0][0].outcome.trial for island in request.islands)[-1:]
        source = proposal.source and proposal.source.replace("variant_", f"variant_{seen:08x}_")
        return proposal.model_copy(update={"source": source, "parents": parents})


def test_cut_off_after_any_commit_the_islands_are_the_same(tmp_path: Path) -> None:
    whole = MemoryStore()
    search(tmp_path, whole, OnIslands(), method="islands")
    rows = list(whole._rows.values())
    for commits in range(0, len(rows), 5):
        store = cut_off(rows, commits)
        search(tmp_path, store, OnIslands(), method="islands")
        assert content_of(store) == content_of(whole), commits


def cut_off(rows: list[Row], commits: int) -> MemoryStore:
    store = MemoryStore()
    for row in rows[:commits]:
        store.append(row)
    return store


def tuned_trials(store: MemoryStore) -> list[int]:
    rows = [store.get(ProposalRow, trial) for trial, _ in store.trials()]
    return [row.trial for row in rows if row and row.proposal.operator == "tune"]


def places(sampling: Sampling, rows: list[Row]) -> list[int]:
    """The numbers of commits to cut off after: a third of them in a sample."""
    entries = [Entry(commits) for commits in range(len(rows))]
    drawn = sampling.draw("commits", entries, -(-len(entries) // 3))
    return [entry.name for entry in drawn]


@pytest.mark.parametrize("tunes", [False, True], ids=["asking", "tuning between replies"])
def test_cut_off_after_any_commit_a_run_decides_the_same(
    tmp_path: Path, sampling: Sampling, tunes: bool
) -> None:
    def new() -> Generator:
        return tuning(SometimesCopying()) if tunes else SometimesCopying()

    whole = MemoryStore()
    search(tmp_path, whole, new())
    rows = list(whole._rows.values())
    slots = list(range(4, TRIALS, 2)) if tunes else []
    # at the first slots no kernel is correct yet, so that the model is asked
    assert tuned_trials(whole) == slots[2:]
    assert {type(row).__name__ for row in rows} >= {"RaceRow", "VerdictRow", "ProposalRow"}
    for commits in places(sampling, rows):
        store = cut_off(rows, commits)
        stored = sum(isinstance(row, RaceRow) for row in rows[:commits])
        asked = search(tmp_path, store, new())
        assert content_of(store) == content_of(whole), commits
        assert verdicts_of(store) == verdicts_of(whole) and races_of(store) == races_of(whole)
        assert elites_of(store) == elites_of(whole)
        assert store.spent().usage == whole.spent().usage
        raced = [item for item in asked if item.what == "race"]
        assert len(raced) == len(races_of(whole)) - stored, "a stored race is not run again"


def test_a_fault_of_a_verification_is_read_from_the_store_after_a_resume(tmp_path: Path) -> None:
    task, store = load_scale_task(tmp_path), MemoryStore()

    def searched(trials: int, faults: bool) -> Engine:
        def verdict_of(candidate: Candidate, verify: bool) -> Verdict:
            if verify and faults:  # as checked mode beside a GPU finds it
                return Verdict(status=Status.fault, reason="race: two lines", tier="fp32")
            return scripted_verdict(candidate, task, SCRIPTED_GPU, STABLE, verify)

        executor = ScriptedExecutor(task, verdict_of=verdict_of)
        engine = make_engine(task, store, ScriptedGenerator(), trials=trials, executor=executor)
        engine.restore()
        assert asyncio.run(run_engine(engine)).complete
        return engine

    def faulty() -> list[int]:
        return [trial for trial, row in enumerate(statuses_of(store)) if row is Status.fault]

    assert not searched(10, faults=True).population.elites
    before = faulty()
    assert before
    elites = searched(20, faults=False).population.elites
    assert elites and not {elite.outcome.trial for elite in elites} & set(before)
    assert faulty() == before


def statuses_of(store: MemoryStore) -> list[Status]:
    """The final status of each trial."""
    return [
        summary.outcome.after(summary.verified).status
        for _, summary in store.trials()
        if summary.outcome is not None
    ]


class Copies(ScriptedGenerator):
    """Gives all trials in flight together the same kernel, the last of them first."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        await asyncio.sleep(self.delay_s * (3 - (request.trial - 3) % 4))
        return Proposal(operator="mutate", source=kernel(f"copy_{(request.trial - 3) // 4}"))


class LateCopies(Copies):
    """The last of them in flight is proposed long after the others have their verdicts."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        proposal = await super().propose(request, replies)
        if (request.trial - 3) % 4 == 3:
            await asyncio.sleep(5 * self.delay_s)
        return proposal


@pytest.mark.parametrize("copies", [Copies, LateCopies])
def test_a_copy_takes_the_stored_verdicts_of_any_other_in_flight_after_a_resume_too(
    tmp_path: Path, sampling: Sampling, copies: type[Copies]
) -> None:
    """Also those of a later one, which was proposed, and judged for all, before an earlier one; and
    of one that is settled by now, but was not when the copy was asked for.
    """
    whole, trials = MemoryStore(), 15
    search(tmp_path, whole, copies(0.02), trials)
    rows = list(whole._rows.values())
    firsts = [row.trial for row in rows if isinstance(row, VerdictRow) and row.part == FIRST]
    if copies is Copies:
        assert firsts != sorted(firsts), "a later one was judged first"
    bars = bars_of(whole)
    for commits in places(sampling, rows):
        store = cut_off(rows, commits)
        judged = {
            (f"copy_{(row.trial - 3) // 4}", "first", bars[max(row.trial - 4, 2)])
            if row.part == FIRST
            else (f"copy_{(row.trial - 3) // 4}", "verify", None)
            for row in rows[:commits]
            if isinstance(row, VerdictRow) and row.trial >= 3 and row.part != FINAL
        }
        asked = [item for item in search(tmp_path, store, copies(), trials) if item.what != "race"]
        finals = sum(row.part == FINAL for row in verdicts_of(store)) - sum(
            isinstance(row, VerdictRow) and row.part == FINAL for row in rows[:commits]
        )
        again = {(item.name, item.what, item.bar) for item in asked[: len(asked) - finals]} & judged
        assert again == set(), f"judged again after {commits} commits"
        assert content_of(store) == content_of(whole)


def bars_of(store: MemoryStore) -> list[float | None]:
    """The score to beat in tier fp32 after each trial."""
    population = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    return [population.bar("fp32") for _ in fold_into_population(store.trials(), population)]
