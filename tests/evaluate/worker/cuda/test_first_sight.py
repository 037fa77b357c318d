"""A candidate that keeps results is slower on inputs that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from evoengine.evaluate.worker.candidate_failures import Cheated
from evoengine.evaluate.worker.cuda.examination import Examined
from evoengine.evaluate.worker.cuda.first_sight import (
    ATTEMPTS,
    MOST_ATTEMPTS,
    SLOWER,
    FirstSight,
    refuse_memory,
)
from evoengine.records import Samples

CALLS = 8
SETS = 12


def timed(call_us: Sequence[float], calls: Sequence[int]) -> Samples:
    return Samples(
        candidate_calls=max(calls),
        baseline_calls=max(calls),
        candidate_us=tuple(call_us),
        baseline_us=tuple(call_us),
        calls=tuple(calls),
    )


class Scene:
    """A candidate whose calls were timed at 100 us, and take `call_us` of the number of renewals
    and of whether the set of the call is new to it.
    """

    def __init__(self, call_us: Callable[[int, bool], float]) -> None:
        self.call_us = call_us
        self.made = 0
        self.seen: set[tuple[int, int]] = set()
        self.examination: Any = SimpleNamespace(replay=self.replay)
        self.wrong: tuple[Any, ...] = ()
        self.clocks_agree = True
        self.is_alive = False

    def alive(self) -> None:
        self.is_alive = True

    def renew(self) -> Any:
        self.made += 1
        return [(self.made, number) for number in range(SETS if self.cold else 1 + CALLS)]

    def replay(self, sets: list[tuple[int, int]], cold: bool) -> Examined:
        assert cold == self.cold and len(sets) == (3 if cold else 1 + CALLS)
        assert self.is_alive, "each replay may take as long as a step of a candidate"
        self.is_alive = False
        calls_us = [self.call_us(self.made, item not in self.seen) for item in sets[1:]]
        self.seen.update(sets)
        times_us = calls_us if cold else [sum(calls_us)]
        return Examined(tuple(times_us) if self.clocks_agree else (), self.wrong)

    def refuse_memory(self, cold: bool) -> tuple[Any, ...]:
        self.cold = cold
        samples = timed([100.0] * 9, [1 if cold else CALLS] * 9)
        return refuse_memory(self.examination, self.renew, samples, cold, self.alive)


def test_only_a_clearly_slower_first_replay_is_suspicious() -> None:
    samples = timed([10.0] * 9, [8] * 9)
    assert FirstSight([8 * 12.0], 8).is_slow(samples)
    assert not FirstSight([8 * 10.5], 8).is_slow(samples)
    assert FirstSight([12.0, 12.0], 1).is_slow(samples), "a cold replay, call by call"
    assert FirstSight([], 8).is_slow(samples), "two clocks disagreed about it"


def test_a_first_replay_is_compared_with_those_of_about_as_many_calls_and_with_all() -> None:
    begins_slowly = timed([12.0, 12.0, 10.0, 10.0], [8, 8, 12, 12])
    assert not FirstSight([8 * 12.0], 8).is_slow(begins_slowly)
    keeps_results_for_later_calls = timed([12.0, 9.0, 8.0, 7.0], [8, 10, 11, 12])
    assert FirstSight([8 * 12.0], 8).is_slow(keeps_results_for_later_calls)


@pytest.mark.parametrize("cold", [False, True])
def test_a_candidate_that_is_slower_on_new_sets_each_time_is_a_cheat(cold: bool) -> None:
    scene = Scene(lambda _, is_new: 100.0 * SLOWER + 20 if is_new else 100.0)
    with pytest.raises(Cheated, match=r"has not seen, 1\.30x, 1\.30x, 1\.30x"):
        scene.refuse_memory(cold)
    assert scene.made == ATTEMPTS


@pytest.mark.parametrize("cold", [False, True])
def test_a_candidate_that_forgets_once_sets_are_new_is_a_cheat(cold: bool) -> None:
    scene = Scene(lambda _, __: 130.0)
    with pytest.raises(Cheated, match=r"has not seen, 1\.18x, 1\.18x, 1\.18x"):
        scene.refuse_memory(cold)


@pytest.mark.parametrize("cold", [False, True])
def test_a_device_that_has_become_a_little_slower_meanwhile_is_none(cold: bool) -> None:
    assert Scene(lambda _, __: 112.0).refuse_memory(cold) == ()


@pytest.mark.parametrize("cold", [False, True])
def test_a_disturbance_of_one_attempt_is_none(cold: bool) -> None:
    scene = Scene(lambda made, is_new: 150.0 if made == 1 and is_new else 101.0)
    assert scene.refuse_memory(cold) == ()
    assert scene.made == 2


def test_clocks_that_disagree_about_new_sets_each_time_clear_no_candidate() -> None:
    scene = Scene(lambda _, __: 100.0)
    scene.clocks_agree = False
    with pytest.raises(Cheated, match="two clocks disagree about the time of its replays on new"):
        scene.refuse_memory(False)
    assert scene.made == MOST_ATTEMPTS


def test_a_wrong_output_on_the_way_is_reported() -> None:
    scene = Scene(lambda _, __: 100.0)
    scene.wrong = ("wrong",)
    assert scene.refuse_memory(False) == ("wrong",)
