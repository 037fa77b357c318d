"""A diagnosis is ended by its own time on the processor, and by the clock only after much more; what
it postpones is not lost.
"""

from __future__ import annotations

import pytest

from evoengine.evaluate.worker.forensics.implied_search import in_spite_of_failures
from evoengine.evaluate.worker.forensics.time_limit import CLOCK_FACTOR, time_limit


class Hand:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("clock_s", "processor_s", "is_over"),
    [
        (0.0, 0.0, False),
        (3 * 4.0, 3.9, False),  # other processes had the machine
        (4.1, 4.1, True),
        (1.0, 4.1, True),  # several threads
        (CLOCK_FACTOR * 4.0 + 0.1, 0.5, True),
    ],
)
def test_waiting_for_the_processor_does_not_end_a_diagnosis_but_much_of_it_does(
    clock_s: float, processor_s: float, is_over: bool
) -> None:
    clock, processor = Hand(), Hand()
    limit = time_limit(4.0, clock, processor)
    clock.seconds += clock_s
    processor.seconds += processor_s
    assert limit.is_over is is_over


def test_what_was_not_taken_before_a_pause_can_be_taken_after_it() -> None:
    changes = (number for number in range(4))
    for _ in in_spite_of_failures(changes):
        break
    assert list(in_spite_of_failures(changes)) == [1, 2, 3]
