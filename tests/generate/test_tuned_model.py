"""A model with a tuner beside it: which trials tune, and what they wait for."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.digest import digest
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.generate.tunable_kernels import FAILED, TunableKernels
from evoengine.generate.tuned_model import TunedModelGenerator
from evoengine.generate.tuning_slots import TuningSlots
from evoengine.protocols import Evaluated, Exhausted, Generator, ProposalRow, Replies, Request
from evoengine.records import Proposal, Reply, Status, Usage
from evoengine.search.engine import Engine
from evoengine.store.memory_store import MemoryStore
from tests.generate.memory_replies import MemoryReplies
from tests.generate.row_sums_task import evaluated, kernel, request
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import (
    SEEDS,
    ScriptedGenerator,
    make_engine,
    run_engine,
    tuning,
)

RIGHT = VerdictRule(correct_share=1.0, unstable_share=0.0, samples=0)
PATIENCE_S = 30.0  # until a test that waits for what never comes is given up


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.29, 1 / 3, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("first", [0, 3])
def test_slots_keep_the_share_at_every_length_and_are_evenly_spread(
    share: float, first: int
) -> None:
    slots = TuningSlots(first, share)
    tuned = [trial for trial in range(300) if slots.has(trial)]
    assert not tuned or tuned[0] >= first
    for trials in range(first, 300):
        count = sum(trial < trials for trial in tuned)
        assert count == slots.before(trials)
        assert (trials - first) * share - 1 < count <= (trials - first) * share + 1e-6
    gaps = {later - earlier for earlier, later in itertools.pairwise(tuned)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def searched(
    folder: Path, generator: Generator, store: MemoryStore, trials: int = 40, seeds: int = 3
) -> Engine:
    engine = make_engine(load_scale_task(folder), store, generator, trials=trials, rule=RIGHT)
    engine.seeds = SEEDS[:seeds]
    asyncio.run(asyncio.wait_for(run_engine(engine), PATIENCE_S))
    return engine


def operators(store: MemoryStore) -> list[str]:
    rows = [store.get(ProposalRow, trial) for trial, _ in store.trials()]
    return [row.proposal.operator for row in rows if row]


def test_every_slot_tunes_a_promising_structure_and_the_model_is_asked_in_the_others(
    tmp_path: Path,
) -> None:
    store, model = MemoryStore(), ScriptedGenerator()
    searched(tmp_path, tuning(model), store)
    found = operators(store)
    assert [number for number, name in enumerate(found) if name == "tune"] == [*range(4, 40, 2)]
    assert [trial for trial, _ in model.asked] == [*range(3, 40, 2)]


def test_a_structure_that_holds_no_place_is_tuned_too(tmp_path: Path) -> None:
    store = MemoryStore()
    engine = searched(tmp_path, tuning(ScriptedGenerator()), store, trials=120)
    rows = [store.get(ProposalRow, trial) for trial, _ in store.trials()]
    parents = {row.proposal.parents[0] for row in rows if row and row.proposal.operator == "tune"}
    held = set[int]()
    for trial in range(120):
        held |= {elite.outcome.trial for elite in engine._elites_so_far.after(trial).elites}
    assert parents - held, "parents that held a place at no time"


def test_no_configuration_is_tuned_twice(tmp_path: Path) -> None:
    store = MemoryStore()
    searched(tmp_path, tuning(ScriptedGenerator()), store, trials=80)
    rows = [row for trial, _ in store.trials() if (row := store.get(ProposalRow, trial))]
    tried = [
        (row.proposal.source, tuple(sorted(row.proposal.tunables.items())))
        for row in rows
        if row.proposal.operator == "tune"
    ]
    assert len(tried) > 30 and len(set(tried)) == len(tried)


class Silent(ScriptedGenerator):
    """A model that replies once `enough` trials have been tuned."""

    def __init__(self, store: MemoryStore, enough: int) -> None:
        super().__init__()
        self._store = store
        self._enough = enough

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        while operators(self._store).count("tune") < self._enough:  # noqa: ASYNC110 - a store has no event
            await asyncio.sleep(0.001)
        return await super().propose(request, replies)


def test_tuning_trials_wait_for_no_reply_that_is_in_flight(tmp_path: Path) -> None:
    """Four trials are in flight: two that ask, and two that tune while no reply has come."""
    store = MemoryStore()
    searched(tmp_path, tuning(Silent(store, 2)), store, trials=20)
    assert operators(store)[3:7] == ["mutate", "tune", "mutate", "tune"]


class Waiting(ScriptedGenerator):
    """A model that never replies."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        await asyncio.Event().wait()
        raise AssertionError


def test_a_tuning_trial_does_not_wait_for_one_before_it_that_found_nothing_and_asks(
    task_path: Path,
) -> None:
    async def nothing_stored(wanted: object) -> tuple[Proposal, ...]:
        return ()

    async def run() -> Proposal:
        generator = TunedModelGenerator(Waiting(), 1.0)
        asked = replace(request(task_path, trial=5), settled=5, pending=nothing_stored)
        asking = asyncio.create_task(generator.propose(asked, MemoryReplies()))
        await asyncio.sleep(0)
        later = replace(asked, trial=6, structures=(evaluated(1),))
        try:
            tuned = generator.propose(later, MemoryReplies())
            return await asyncio.wait_for(tuned, PATIENCE_S)
        finally:
            assert not asking.done()
            asking.cancel()

    assert asyncio.run(run()).operator == "tune"


def test_what_other_tuning_trials_in_flight_try_is_not_tried_again(task_path: Path) -> None:
    """Those of this process, and those that were stored before a resume."""
    structure = evaluated(1)

    async def run(stored: tuple[Proposal, ...], count: int) -> list[Proposal]:
        async def pending(wanted: object) -> tuple[Proposal, ...]:
            return stored

        generator = TunedModelGenerator(Waiting(), 1.0)
        generator.tell(structure.outcome)
        asked = replace(
            request(task_path, trial=5), settled=5, pending=pending, structures=(structure,)
        )
        return [
            await generator.propose(replace(asked, trial=5 + number), MemoryReplies())
            for number in range(count)
        ]

    live = asyncio.run(run((), 3))  # the space has four configurations, one of them settled
    assert len({tuple(proposal.tunables.items()) for proposal in live}) == 3
    for number in range(3):
        before = tuple(live[:number])
        again = asyncio.run(run(before, 1))[0]
        assert again.tunables not in [proposal.tunables for proposal in before]


def test_a_kernel_with_other_values_first_is_tuned_as_the_same_kernel(task_path: Path) -> None:
    """A model sends a kernel again with other first guesses: four configurations, two settled."""
    first = evaluated(1, "k")
    source = first.source.replace(
        "  THREADS: [128, 256]\n  ROWS: [1, 2]", "  ROWS: [2, 1]\n  THREADS: [256, 128]"
    )
    again = replace(
        evaluated(2, "k"),
        source=source,
        outcome=evaluated(2, "k").outcome.model_copy(update={"source_digest": digest(source)}),
    )

    async def run(structures: tuple[Evaluated, ...]) -> list[Proposal]:
        async def pending(wanted: object) -> tuple[Proposal, ...]:
            return ()

        generator = TunedModelGenerator(ScriptedGenerator(), 1.0)
        for structure in structures:
            generator.tell(structure.outcome)
        asked = replace(
            request(task_path, trial=5), settled=5, pending=pending, structures=structures
        )
        return [
            await generator.propose(replace(asked, trial=5 + number), MemoryReplies())
            for number in range(3)
        ]

    for structures in ((first, again), (again, first)):
        proposals = asyncio.run(run(structures))
        assert [item.operator for item in proposals] == ["tune", "tune", "mutate"]
        tried = [item.tunables for item in proposals[:2]]
        expected = [{"THREADS": 128, "ROWS": 2}, {"THREADS": 256, "ROWS": 1}]
        assert sorted(tried, key=lambda item: item["THREADS"]) == expected


class Untunable(ScriptedGenerator):
    """Proposes kernels with one configuration."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        self.asked.append((request.trial, 0))
        source = kernel(f"k_{request.trial}")
        return Proposal(operator="mutate", source=source)


def test_where_nothing_is_left_to_tune_a_slot_asks_the_model(tmp_path: Path) -> None:
    """The starting kernel has 12 configurations, the others do not bind to the task."""
    store, model = MemoryStore(), Untunable()
    searched(tmp_path, tuning(model), store, trials=60, seeds=1)
    found = operators(store)
    assert found.count("tune") == 11
    assert len(model.asked) == 60 - 1 - 11
    assert found[-10:] == ["mutate"] * 10


def test_a_reply_that_was_paid_for_before_the_share_was_raised_is_used(task_path: Path) -> None:
    async def nothing_stored(wanted: object) -> tuple[Proposal, ...]:
        return ()

    replies = MemoryReplies()
    asked = replace(
        request(task_path, trial=5), settled=5, pending=nothing_stored, structures=(evaluated(1),)
    )

    async def proposed() -> Proposal:
        return await TunedModelGenerator(Untunable(), 1.0).propose(asked, replies)

    assert asyncio.run(proposed()).operator == "tune"
    replies.stored[0] = Reply(model="m", prompt="p", text="t", usage=Usage(), finish_reason="stop")
    assert asyncio.run(proposed()).operator == "mutate"


def test_a_kernel_that_a_model_sends_again_is_no_other_configuration(task_path: Path) -> None:
    first = evaluated(1)
    again = first.outcome.model_copy(
        update={"trial": 4, "status": Status.rejected, "score": None, "latency_us": None}
    )
    known = TunableKernels()
    for outcome in (first.outcome, again):
        known.tell(outcome)
    asked = replace(request(task_path, trial=6), settled=5)
    found = known.kernel(first.source, first, asked, ())
    assert found is not None
    [(_, loss)] = found.settled
    assert (found.tries, loss) == (1, found.best) and loss < FAILED


class Counting(ScriptedGenerator):
    """Keeps which of the trials that ask each one is told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[int, int] = {}

    async def ask(self, request: Request, replies: Replies, asked: int) -> Proposal:
        self.numbers[request.trial] = asked
        return await self.propose(request, replies)


def test_trials_that_ask_are_counted_right_where_a_resume_changes_the_share(tmp_path: Path) -> None:
    """By the number a replay finds the reply; those in flight were proposed with the other share."""
    whole = MemoryStore()
    searched(tmp_path, tuning(ScriptedGenerator()), whole)
    rows = list(whole._rows.values())
    for commits in range(len(rows) // 3, len(rows), 9):
        store, model = MemoryStore(), Counting()
        for row in rows[:commits]:
            store.append(row)
        engine = make_engine(
            load_scale_task(tmp_path), store, TunedModelGenerator(model, 0.2), rule=RIGHT
        )
        engine.restore()
        asyncio.run(asyncio.wait_for(run_engine(engine), PATIENCE_S))
        asking = [trial for trial, name in enumerate(operators(store)) if name == "mutate"]
        assert model.numbers.items() <= dict(zip(asking, itertools.count())).items(), commits


class Ending(ScriptedGenerator):
    """Has nothing left to propose from trial 20 on."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if request.trial >= 20:
            raise Exhausted("no more")
        return await super().propose(request, replies)


def test_a_run_whose_model_has_nothing_left_ends_and_says_why(tmp_path: Path) -> None:
    store = MemoryStore()
    engine = make_engine(load_scale_task(tmp_path), store, tuning(Ending()), rule=RIGHT)
    ended = asyncio.run(run_engine(engine))
    assert (ended.reason, ended.complete, engine.settled) == ("no more", True, 21)


def test_a_request_of_a_run_without_a_share_has_no_structures(tmp_path: Path) -> None:
    seen: list[Request] = []

    class Watching(ScriptedGenerator):
        async def propose(self, request: Request, replies: Replies) -> Proposal:
            seen.append(request)
            return await super().propose(request, replies)

    searched(tmp_path, Watching(), MemoryStore())
    assert seen and all(
        asked.structures == () and asked.tuning_trials == 0 and not asked.tried("any")
        for asked in seen
    )
    seen.clear()
    searched(tmp_path, tuning(Watching()), MemoryStore())
    assert all(asked.structures and asked.tuning_trials == 18 for asked in seen)
