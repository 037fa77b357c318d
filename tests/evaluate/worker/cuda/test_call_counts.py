"""How many calls a replay has: never from the candidate, never to be foreseen."""

from __future__ import annotations

import inspect
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.evaluate.worker.cuda.call_counts import (
    LEAST_OF_MOST,
    MOST_CALLS,
    MOST_COLD_CALLS,
    REPLAY_BYTES,
    WARM_UP_CALLS,
    CallRange,
    call_range,
    draw_cold,
)

L2 = 50 * 1024**2
PAGE = 2 * 1024**2


@pytest.mark.parametrize(
    ("call_bytes", "slot_bytes", "baseline_us", "sets", "expected"),
    [
        (1024, PAGE, 3.0, 16, CallRange(4, 12)),
        (1024, PAGE, None, 16, CallRange(4, 12)),
        (8 * 1024**2, 10 * PAGE, 9.0, 16, CallRange(2, 3)),  # half of L2 holds three
        (4 * 1024**2, 10 * PAGE, 9.0, 16, CallRange(2, 6)),
        (1024, PAGE, 40.0, 16, CallRange(2, 5)),  # of 200 us
        (1024, PAGE, 90.0, 16, CallRange(2, 3)),
        (1024, PAGE, 100.0, 16, CallRange(1, 2)),
        (1024, PAGE, 1e6, 16, CallRange(1, 2)),
        (1024, PAGE, 3.0, 6, CallRange(2, 5)),  # each has a set of its own
        (1024**3, REPLAY_BYTES // 3, 1e6, 12, CallRange(1, 2)),  # more do not fit
        (1024**3, REPLAY_BYTES, 1e6, 12, CallRange(1, 1)),
        (1024**3, 2 * REPLAY_BYTES, 1e6, 12, CallRange(1, 1)),
    ],
)
def test_the_range_follows_from_the_case_its_baseline_and_the_device(
    call_bytes: int, slot_bytes: int, baseline_us: float | None, sets: int, expected: CallRange
) -> None:
    assert call_range(call_bytes, slot_bytes, L2, baseline_us, sets) == expected


@given(
    st.integers(1, 2**33),
    st.integers(1, 2**33),
    st.integers(1, 2**27),
    st.one_of(st.none(), st.floats(0.5, 1e7)),
    st.integers(12, 32),
)
def test_no_call_knows_that_it_is_the_last_unless_the_device_holds_no_more_than_one(
    call_bytes: int, slot_bytes: int, l2_bytes: int, baseline_us: float | None, sets: int
) -> None:
    found = call_range(call_bytes, slot_bytes, l2_bytes, baseline_us, sets)
    assert 1 <= found.least <= found.most <= min(MOST_CALLS, sets - WARM_UP_CALLS)
    assert found.least < found.most or slot_bytes * (2 + WARM_UP_CALLS) > REPLAY_BYTES
    if found.most > LEAST_OF_MOST:
        assert slot_bytes * (found.most + WARM_UP_CALLS) <= REPLAY_BYTES


def test_nothing_about_the_candidate_but_the_room_of_its_buffers_enters() -> None:
    assert list(inspect.signature(call_range).parameters) == [
        "call_bytes",
        "slot_bytes",
        "l2_bytes",
        "baseline_us",
        "sets",
    ]
    found = {call_range(1024, slot_bytes, L2, 9.0, 16) for slot_bytes in (1, PAGE, 50 * PAGE)}
    assert len(found) == 1, "scratch that fits changes nothing"


def test_every_number_of_the_range_is_drawn_about_as_often_as_every_other() -> None:
    counts = CallRange(8, 12)
    drawn = [counts.draw() for _ in range(2000)]
    # expected 400 each; 5 standard deviations are 90
    assert sorted(set(drawn)) == list(range(8, 13))
    assert all(310 < drawn.count(number) < 490 for number in range(8, 13))
    cold = [draw_cold() for _ in range(2000)]
    assert sorted(set(cold)) == list(range(1, MOST_COLD_CALLS + 1))
    assert min(cold.count(number) for number in set(cold)) > 2000 / MOST_COLD_CALLS - 112


def test_every_number_below_the_least_of_a_timed_replay_ends_an_untimed_one() -> None:
    drawn = [CallRange(8, 12).draw_fewer() for _ in range(1400)]
    # expected 200 each; 5 standard deviations are 66
    assert sorted(set(drawn)) == list(range(1, 8))
    assert all(134 < drawn.count(number) < 266 for number in range(1, 8))
    for least, most in ((2, 3), (1, 2), (1, 1)):
        assert {CallRange(least, most).draw_fewer() for _ in range(50)} == {1}


def test_any_number_up_to_the_most_of_a_timed_replay_ends_another_untimed_one() -> None:
    drawn = [CallRange(2, 4).draw_any() for _ in range(1600)]
    # expected 400 each; 5 standard deviations are 87
    assert sorted(set(drawn)) == [1, 2, 3, 4]
    assert all(313 < drawn.count(number) < 487 for number in range(1, 5))


def test_a_seed_that_somebody_sets_foresees_no_draw() -> None:
    def draws() -> list[int]:
        random.seed(0)
        return [CallRange(1, 12).draw() for _ in range(40)]

    assert draws() != draws()
