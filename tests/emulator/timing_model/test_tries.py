"""How often lanes try that change one address by turns."""

from __future__ import annotations

import pytest

from evoengine.emulator.timing_model.tries import share_that_goes_on, tries


def by_turns(lanes: float, go_on: float) -> tuple[int, float]:
    rounds, all_ = 0, 0.0
    while lanes >= 1:
        rounds, all_ = rounds + 1, all_ + lanes
        lanes = go_on * (lanes - 1)
    return rounds, all_


@pytest.mark.parametrize("go_on", [0.0, 0.3, 0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("lanes", [1, 2, 7, 100, 5000])
def test_tries_are_those_of_lanes_that_go_on_by_turns(lanes: int, go_on: float) -> None:
    found = tries(lanes, go_on)
    rounds, all_ = by_turns(lanes, go_on)
    assert found.rounds == pytest.approx(rounds, abs=1)
    assert found.tries == pytest.approx(all_, rel=0.3)


@pytest.mark.parametrize("go_on", [0.3, 0.5, 0.9, 0.99])
def test_the_share_that_goes_on_follows_from_the_changes(go_on: float) -> None:
    assert share_that_goes_on(5000, tries(5000, go_on).rounds) == pytest.approx(go_on, rel=1e-3)


def test_all_go_on_where_each_makes_a_change_and_none_where_one_does() -> None:
    assert share_that_goes_on(300, 300) == 1
    assert share_that_goes_on(300, 1) == share_that_goes_on(0, 0) == 0
