"""Ends that the settled trials decide: a plateau, and a share of the roofline."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR, SCRIPTED_GPU
from evoengine.evaluate.scripted.scripted_findings import FLOOR_US
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.events import Event, Notice, RunEnded, TrialSettled
from evoengine.population.elites import MODEL_RESOLUTION, Population
from evoengine.protocols import FINAL, Replies, ReplyRow, Request, RequestRow, VerdictRow
from evoengine.records import (
    TIMING_VERSION,
    EndKind,
    Environment,
    Interval,
    Outcome,
    Proposal,
    Status,
)
from evoengine.search.early_end import LONG_WITHOUT_GAIN, EarlyEnd
from evoengine.search.engine import Engine
from evoengine.search.gains import Gains
from evoengine.search.settled_trials import fold_into_population
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import load_scale_task
from tests.search.scripted_generator import (
    CLOSE,
    SEEDS,
    ScriptedGenerator,
    SometimesCopying,
    content_of,
    elites_of,
    make_engine,
    run_engine,
    verdicts_of,
)

TRIALS = 90
IN_FLIGHT = 4  # of make_engine
TIMED = VerdictRule(correct_share=0.6, unstable_share=0.4, samples=5)


class Watching(SometimesCopying):
    """Keeps what each request says of the trials without gain."""

    def __init__(self, delay_s: float = 0.0) -> None:
        super().__init__(delay_s)
        self.without_gain: dict[int, int] = {}

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        self.without_gain[request.trial] = request.trials_without_gain
        return await super().propose(request, replies)


def search(
    folder: Path, store: MemoryStore, generator: ScriptedGenerator | None = None, **options: Any
) -> tuple[Engine, RunEnded]:
    settings = {"trials": TRIALS, "rule": CLOSE, **options}
    generator = generator or SometimesCopying()
    engine = make_engine(load_scale_task(folder), store, generator, **settings)
    engine.restore()
    return engine, asyncio.run(run_engine(engine))


def judged(store: MemoryStore) -> list[tuple[int, int, str]]:
    """The verdicts that count, in words, because NaN differs from itself."""
    return [(row.trial, row.part, row.verdict.model_dump_json()) for row in verdicts_of(store)]


def gains_of(events: list[Event]) -> list[int]:
    """The trials after which another one holds the first place of a tier."""
    found, before = [], {}
    for event in events:
        if isinstance(event, TrialSettled):
            firsts = {elite.tier: elite.outcome.trial for elite in event.elites if elite.place == 1}
            if firsts != before:
                found.append(event.outcome.trial)
            before = firsts
    return found


def without_gain(gains: list[int], trial: int) -> int:
    """The trials without gain once `trial` is settled."""
    last = max([len(SEEDS) - 1, *(gain for gain in gains if gain <= trial)])
    return max(0, trial - last)


def long_run(folder: Path) -> tuple[MemoryStore, list[Event], Watching]:
    """A run that its budget ends."""
    store, events, generator = MemoryStore(), list[Event](), Watching()
    _, ended = search(folder, store, generator, observe=events.append)
    assert ended == RunEnded("the budget of trials is spent", EndKind.trials)
    return store, events, generator


@pytest.mark.parametrize("plateau", [1, 4, 9, 14])
def test_a_run_ends_at_the_first_trial_after_so_many_without_gain_and_settles_those_under_way(
    tmp_path: Path, plateau: int
) -> None:
    whole, events, _ = long_run(tmp_path)
    gains = gains_of(events)
    at = next(trial for trial in range(TRIALS) if without_gain(gains, trial) >= plateau)
    assert at + IN_FLIGHT < TRIALS, "the plateau is what ends it"
    store = MemoryStore()
    engine, ended = search(tmp_path, store, plateau=plateau)
    assert (ended.kind, ended.complete, engine.settled) == (EndKind.plateau, True, at + IN_FLIGHT)
    later = [gain for gain in gains if at < gain < engine.settled]
    assert ended.reason == (
        f"no gain in {plateau} trials up to trial {at}; trial {later[-1]}, which was under way"
        " then, brought one: a larger --plateau goes on"
        if later
        else f"no gain in the last {plateau + IN_FLIGHT - 1} trials (--plateau {plateau})"
    )
    proposed, *settled = content_of(store)
    assert proposed == list(range(engine.settled)), "nothing is proposed after it"
    assert settled == content_of(whole)[1:][: engine.settled]
    elites = {elite.outcome.trial for elite in elites_of(store)}
    assert {trial for trial in range(TRIALS) if store.get(VerdictRow, trial, FINAL)} == elites


def test_trials_without_gain_are_those_up_to_the_horizon_of_a_request(tmp_path: Path) -> None:
    _, events, generator = long_run(tmp_path)
    gains = gains_of(events)
    horizons = {trial: max(trial - IN_FLIGHT, len(SEEDS) - 1) for trial in range(3, TRIALS)}
    assert generator.without_gain == {
        trial: without_gain(gains, horizon) for trial, horizon in horizons.items()
    }
    assert max(generator.without_gain.values()) > 3


@pytest.mark.parametrize(
    ("limits", "rule"),
    [({"plateau": 4}, CLOSE), ({"stop_at_roofline": 0.5}, TIMED)],
    ids=["plateau", "roofline"],
)
def test_cut_off_after_any_commit_a_run_ends_at_the_same_trial_for_the_same_reason(
    tmp_path: Path, limits: dict[str, Any], rule: VerdictRule
) -> None:
    whole, generator = MemoryStore(), Watching()
    _, ended = search(tmp_path, whole, generator, rule=rule, **limits)
    assert ended.kind.value in ("plateau", "roofline")
    rows = list(whole._rows.values())
    for commits in range(0, len(rows) + 1, 5):
        store, resumed = MemoryStore(), Watching()
        for row in rows[:commits]:
            store.append(row)
        _, again = search(tmp_path, store, resumed, rule=rule, **limits)
        assert again == ended, commits
        assert content_of(store) == content_of(whole)
        assert judged(store) == judged(whole)
        assert resumed.without_gain.items() <= generator.without_gain.items()
    _, again = search(tmp_path, whole, resumed := Watching(), rule=rule, **limits)
    assert (again, resumed.asked) == (ended, []), "a run that has ended asks for nothing more"


def test_a_larger_plateau_goes_on_as_the_run_that_had_it_from_the_start(tmp_path: Path) -> None:
    whole, _, _ = long_run(tmp_path)
    store = MemoryStore()
    engine, _ = search(tmp_path, store, plateau=4)
    settled = engine.settled
    assert settled < TRIALS
    _, ended = search(tmp_path, store, plateau=TRIALS, limits_from=settled)
    assert ended.kind is EndKind.trials
    assert content_of(store) == content_of(whole)


def test_a_smaller_plateau_does_not_look_at_the_trials_before_it(tmp_path: Path) -> None:
    """A run that went on after four trials without gain, and gained, is not ended by them."""
    _, events, _ = long_run(tmp_path)
    gains = gains_of(events)
    before = next(gain for gain in gains if any(without_gain(gains, it) >= 4 for it in range(gain)))
    store = MemoryStore()
    search(tmp_path, store, trials=before + 1)
    engine, ended = search(tmp_path, store, plateau=4, limits_from=before + 1)
    assert ended.kind is EndKind.plateau
    assert engine.settled > before + 4


def test_a_smaller_plateau_settles_what_an_interrupted_run_has_paid_for(tmp_path: Path) -> None:
    """A resume may find the plateau reached with more trials under way than the search that reaches
    it leaves behind.
    """
    whole, _, _ = long_run(tmp_path)
    rows = list(whole._rows.values())
    ended_early = 0
    for commits in range(len(rows) // 2, len(rows), 7):
        store = MemoryStore()
        for row in rows[:commits]:
            store.append(row)
        before = sum(1 for _ in fold_into_population(store.trials(), empty_population()))
        _, ended = search(tmp_path, store, plateau=1, limits_from=before)
        ended_early += ended.kind is EndKind.plateau
        paid = [trial for trial in range(TRIALS) if store.get(ReplyRow, trial)]
        judged_trials = [trial for trial in paid if store.get(VerdictRow, trial)]
        assert judged_trials == paid, commits
        assert elites_of(store) and all(
            store.get(VerdictRow, elite.outcome.trial, FINAL) for elite in elites_of(store)
        ), commits
    assert ended_early > 3


def empty_population() -> Population:
    return Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)


def test_a_run_ends_once_a_kernel_reaches_the_share_of_the_roofline(tmp_path: Path) -> None:
    store, events = MemoryStore(), list[Event]()
    engine, ended = search(tmp_path, store, rule=TIMED, stop_at_roofline=0.4, observe=events.append)
    assert ended.kind is EndKind.roofline and ended.complete
    best = [
        (event.outcome.trial, elite)
        for event in events
        if isinstance(event, TrialSettled)
        for elite in event.elites
        if elite.place == 1 and elite.outcome.latency_us.value <= FLOOR_US / 0.4
    ]
    at, elite = best[0]
    assert engine.settled == at + IN_FLIGHT < TRIALS
    us = elite.outcome.latency_us.value
    assert ended.reason == (
        f"trial {elite.outcome.trial} of {elite.tier} takes {us:.4g} us, and the device allows no"
        f" less than {FLOOR_US:.4g} us: {FLOOR_US / us:.2f} of the roofline"
        " (--stop-at-roofline 0.4)"
    )


def test_without_a_known_floor_no_kernel_reaches_the_roofline(tmp_path: Path) -> None:
    """The verdicts of this rule have no timings, as those of earlier versions have no floors."""
    _, ended = search(tmp_path, MemoryStore(), trials=20, stop_at_roofline=0.01)
    assert ended.kind is EndKind.trials


class Worsening(ScriptedGenerator):
    """Proposes nothing that could be judged."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        return Proposal(operator="mutate", source=None, problem=f"no kernel {request.trial}")


def test_a_long_time_without_gain_is_said_once_and_not_again_after_a_resume(tmp_path: Path) -> None:
    store, events = MemoryStore(), list[Event]()
    rule = VerdictRule(correct_share=1.0, unstable_share=0.0, samples=0)
    options = {"rule": rule, "plateau": 60}
    search(tmp_path, store, Worsening(), trials=40, observe=events.append, **options)
    notices = [event.text for event in events if isinstance(event, Notice)]
    last = gains_of(events)[-1]
    assert notices == [
        f"no gain in the last {LONG_WITHOUT_GAIN} trials; the last one was trial {last}; half of"
        " the prompts ask for new designs until the next gain; 60 in a row end the run"
    ]
    at = events.index(next(event for event in events if isinstance(event, Notice)))
    assert events[at - 1].outcome.trial == len(SEEDS) + LONG_WITHOUT_GAIN - 1
    again = list[Event]()
    search(tmp_path, store, Worsening(), trials=50, observe=again.append, **options)
    assert not any(isinstance(event, Notice) for event in again)


# ---------------------------------------------------------------- what a gain is


def outcome(trial: int, us: float, tier: str = "fp32", noise: float = 0.0) -> Outcome:
    return Outcome(
        trial=trial,
        operator="mutate",
        parents=(),
        source_digest=str(trial),
        tunables={},
        label="",
        status=Status.correct,
        reason="",
        tier=tier,
        code_digest=str(trial),
        score=Interval(value=us, low=us * (1 - noise), high=us * (1 + noise)),
        latency_us=Interval(value=us, low=us, high=us),
    )


def last_gains(
    outcomes: list[Outcome], environment: Environment = SCRIPTED_EMULATOR
) -> list[int | None]:
    """The last gain after each of `outcomes`."""
    population, gains, found = Population.of_run(3, environment, TIMING_VERSION), Gains(0), []
    for item in outcomes:
        population.add(item, item)
        gains.add(population)
        found.append(gains.last)
    return found


def test_small_steps_are_a_gain_once_they_add_up_to_more_than_the_interval() -> None:
    step = 1 - 0.6 * MODEL_RESOLUTION
    steps = [outcome(trial, 100 * step**trial) for trial in range(5)]
    assert last_gains(steps) == [0, 0, 2, 2, 4]
    noisy = [outcome(trial, 100 * 0.98**trial, noise=0.02) for trial in range(4)]
    assert last_gains(noisy) == [0, 0, 2, 2]


def test_the_first_kernel_of_another_tier_is_a_gain_and_a_slower_one_is_none() -> None:
    found = [outcome(0, 100), outcome(1, 120), outcome(2, 90, "fp16"), outcome(3, 95, "fp16")]
    assert last_gains(found) == [0, 0, 2, 2]


def test_a_plateau_is_not_reached_before_the_starting_kernels_are_settled(tmp_path: Path) -> None:
    task = load_scale_task(tmp_path)
    config = make_engine(task, MemoryStore(), ScriptedGenerator(), plateau=1).config
    end = EarlyEnd(config, task, 3, lambda _: pytest.fail("no verdict is needed"))
    population = Population.of_run(3, SCRIPTED_GPU, TIMING_VERSION)
    for trial in range(3):
        end.add(trial, population)
        assert end.reached is None and end.gains.trials_without == 0
    end.add(3, population)
    assert end.reached is not None and end.reached.trial == 3


def test_nothing_is_paid_for_after_an_end(tmp_path: Path) -> None:
    store = MemoryStore()
    engine, _ = search(tmp_path, store, plateau=4)
    sent = [trial for trial in range(TRIALS) if store.get(RequestRow, trial)]
    assert sent == list(range(len(SEEDS), engine.settled))
    assert math.isclose(store.spent().usage.cost_usd, 0.01 * len(sent))
