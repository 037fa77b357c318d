"""Whether a candidate is slower on inputs that it has not seen: then it keeps results.

A runner that has run no other candidate has seen no set. What its first replay takes is compared
with what later ones take, when all sets have come several times. Where it took longer, the case
gets new sets, and their first replay is compared with the next one on the same sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evoengine.evaluate.worker.candidate_failures import Cheated
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.records import InputSetCheck
from evoengine.statistics import median

SLOWER = 1.1
ATTEMPTS = 3  # with new sets; a candidate that is slower each time is refused
REPEATS = 3  # on the same sets


class FirstSight:
    """The first hot replay of one candidate on one case."""

    def __init__(self, first_us: float, calls: int) -> None:
        """`first_us` is its time for all of its `calls`."""
        self._call_us = first_us / calls
        self._calls = calls

    def is_slow(self, call_us: Sequence[float], calls: Sequence[int]) -> bool:
        """Whether it took longer than later samples with about as many calls each."""
        alike = [
            time_us
            for time_us, count in zip(call_us, calls, strict=True)
            if abs(count - self._calls) <= 1
        ]
        return bool(alike) and self._call_us > SLOWER * median(alike)


def refuse_memory(
    examination: Examination, renew: Callable[[], Sequence[PoolSet]]
) -> tuple[InputSetCheck, ...]:
    """Raises Cheated if the candidate is slower on new sets, time and again; returns the wrong sets
    of a replay that had any.

    `renew` makes new sets for the case.
    """
    ratios = []
    for _ in range(ATTEMPTS):
        sets = list(renew())
        replays = [examination.replay(sets, False) for _ in range(1 + REPEATS)]
        wrong = next((replay.wrong for replay in replays if replay.wrong), ())
        if wrong:
            return wrong
        ratios.append(_first_to_others(replays))
        if ratios[-1] <= SLOWER:
            return ()
    raise Cheated(
        "slower on inputs that it has not seen, "
        + ", ".join(f"{ratio:.2f}x" for ratio in ratios)
        + ": it keeps results from one replay to the next"
    )


def _first_to_others(replays: Sequence[Examined]) -> float:
    """The time of the first replay over that of the others; 1 where clocks disagreed."""
    first, *others = replays
    later = [time_us for replay in others for time_us in replay.times_us]
    return first.times_us[0] / median(later) if first.times_us and later else 1.0
