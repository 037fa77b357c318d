"""Copies in flight have one verdict, also where a kernel judged twice has two, and a run is cut off
between them.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from pathlib import Path

import pytest

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.evaluate.scripted.scripted_verdict import scripted_verdict
from evoengine.population.elites import Population
from evoengine.protocols import FIRST, VERIFY, ProposalRow, Replies, Request, VerdictRow
from evoengine.records import TIMING_VERSION, Interval, Proposal, Status, Verdict
from evoengine.search.settled_trials import fold_into_population
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import (
    CLOSE,
    SEEDS,
    ScriptedGenerator,
    make_engine,
    run_engine,
    tuning,
)

TRIALS, IN_FLIGHT = 40, 4  # the latter of make_engine
DELAY_S = 0.002
NOISE = 0.1  # of the score of each verdict


class Late(ScriptedGenerator):
    """Gives most trials in flight together the same kernel, some of them long after others."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(DELAY_S)
        self._rng = rng

    def name_of(self, trial: int, text: str) -> str:
        return f"copy_{trial // 4}" if derived_seed(text) % 4 else super().name_of(trial, text)

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        proposal = await super().propose(request, replies)
        if self._rng.random() < 0.3:
            await asyncio.sleep(5 * DELAY_S * self._rng.random())
        return proposal


def search(folder: Path, store: MemoryStore, rng: random.Random, tunes: bool) -> None:
    """Runs what is left of a run, by an executor that gives each verdict another score."""
    task = load_scale_task(folder)

    def noisy(candidate: Candidate, verify: bool) -> Verdict:
        verdict = scripted_verdict(candidate, task, SCRIPTED_GPU, CLOSE, verify)
        if (score := verdict.score) is None:
            return verdict
        by = rng.uniform(1 - NOISE, 1 + NOISE)
        other = Interval(value=score.value * by, low=score.low * by, high=score.high * by)
        return verdict.model_copy(update={"score": other})

    model = Late(rng)
    executor = ScriptedExecutor(task, verdict_of=noisy, delay_s=DELAY_S)
    engine = make_engine(
        task, store, tuning(model) if tunes else model, trials=TRIALS, executor=executor
    )
    engine.restore()
    assert asyncio.run(run_engine(engine)).complete
    population = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    for _ in fold_into_population(store.trials(), population):
        pass
    assert population.elites == engine.population.elites


def copies_of(store: MemoryStore) -> int:
    """The copies whose verdicts had to be those of another trial, and are."""
    population = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    after = {-1: population.copy()}
    for trial, _ in enumerate(fold_into_population(store.trials(), population)):
        after[trial] = population.copy()
    known: dict[object, list[tuple[int, Verdict]]] = defaultdict(list)
    for trial in range(TRIALS):
        row, first = store.get(ProposalRow, trial), store.get(VerdictRow, trial, FIRST)
        assert row and first
        if first.verdict.status is Status.rejected:
            continue
        window = trial - IN_FLIGHT
        horizon = max(window, len(SEEDS) - 1) if trial >= len(SEEDS) else window
        bar = after[max(horizon, -1)].bar(first.verdict.tier)
        kernel = row.proposal.source, tuple(sorted(row.proposal.tunables.items()))
        known["first", kernel, bar].append((trial, first.verdict))
        assert known["first", kernel, bar][0][0] > horizon or len(known["first", kernel, bar]) == 1
        if verification := store.get(VerdictRow, trial, VERIFY):
            known["verification", kernel].append((trial, verification.verdict))
    for alike in known.values():
        texts = {verdict.model_dump_json() for _, verdict in alike}
        assert len(texts) == 1, [trial for trial, _ in alike]
    return sum(len(alike) - 1 for alike in known.values())


@pytest.mark.parametrize("tunes", [False, True], ids=["asking", "tuning between replies"])
def test_copies_have_one_verdict_wherever_a_run_is_cut_off(tmp_path: Path, tunes: bool) -> None:
    rng = random.Random(5)  # noqa: S311 - reproducible on purpose, but for the timing
    whole = MemoryStore()
    search(tmp_path, whole, rng, tunes)
    copies = copies_of(whole)
    for _ in range(15):
        rows = list(whole._rows.values())
        store = MemoryStore()
        for row in rows[: rng.randrange(len(rows))]:
            store.append(row)
        search(tmp_path, store, rng, tunes)
        copies += copies_of(store)
        whole = store
    assert copies > 15
