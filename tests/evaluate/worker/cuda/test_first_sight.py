"""A candidate that keeps results is slower on inputs that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evoengine.evaluate.worker.candidate_failures import Cheated
from evoengine.evaluate.worker.cuda.examination import Examined
from evoengine.evaluate.worker.cuda.first_sight import (
    ATTEMPTS,
    SLOWER,
    FirstSight,
    refuse_memory,
)


class Scene:
    """A candidate whose replay of sets takes 100 us, and `new_us` where it has not seen them."""

    def __init__(self, new_us: Callable[[int], float]) -> None:
        self.new_us = new_us
        self.made = 0
        self.seen: set[int] = set()
        self.examination: Any = SimpleNamespace(replay=self.replay)
        self.wrong: tuple[Any, ...] = ()

    def renew(self) -> Any:
        self.made += 1
        return [self.made]

    def replay(self, sets: list[int], cold: bool) -> Examined:
        assert not cold
        is_new = sets[0] not in self.seen
        self.seen.update(sets)
        return Examined((self.new_us(self.made) if is_new else 100.0,), self.wrong)


def test_only_a_clearly_slower_first_replay_is_suspicious() -> None:
    assert FirstSight(8 * 12.0, 8).is_slow([10.0] * 9, [8] * 9)
    assert not FirstSight(8 * 10.5, 8).is_slow([10.0] * 9, [8] * 9)


def test_a_first_replay_is_compared_with_those_of_about_as_many_calls() -> None:
    calls_us, counts = [20.0, 10.0, 10.0, 10.0], [2, 8, 9, 7]
    assert FirstSight(8 * 12.0, 8).is_slow(calls_us, counts)
    assert not FirstSight(2 * 20.0, 2).is_slow(calls_us, counts)
    assert not FirstSight(100.0, 30).is_slow(calls_us, counts), "there is none to compare with"


def test_a_candidate_that_is_slower_on_new_sets_each_time_is_a_cheat() -> None:
    scene = Scene(lambda _: 100.0 * SLOWER + 20)
    with pytest.raises(Cheated, match=r"has not seen, 1\.30x, 1\.30x, 1\.30x"):
        refuse_memory(scene.examination, scene.renew)
    assert scene.made == ATTEMPTS


def test_a_disturbance_of_one_replay_is_none() -> None:
    scene = Scene(lambda number: 150.0 if number == 1 else 101.0)
    assert refuse_memory(scene.examination, scene.renew) == ()
    assert scene.made == 2


def test_a_wrong_output_on_the_way_is_reported() -> None:
    scene = Scene(lambda _: 100.0)
    scene.wrong = ("wrong",)
    assert refuse_memory(scene.examination, scene.renew) == ("wrong",)
