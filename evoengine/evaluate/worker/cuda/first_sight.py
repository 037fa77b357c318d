"""Whether a candidate is slower on inputs that it has not seen: then it keeps results.

A runner that has run no other candidate has seen no set. What its first replay takes is compared
with what the timed ones take, when all sets have come several times. Where it took longer, the case
gets new sets, and their first replay is compared with the next ones on the same sets, and with the
timed ones: a candidate that stops using what it keeps once sets are new is as slow on all of them.

Only the kind of replay whose time is the score is compared, hot or cold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evoengine.evaluate.worker.candidate_failures import Cheated
from evoengine.evaluate.worker.cuda.call_counts import MOST_COLD_CALLS, WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.records import InputSetCheck, Samples
from evoengine.statistics import median

SLOWER = 1.1
ATTEMPTS = 3  # with new sets; a candidate that is slower each time is refused
MOST_ATTEMPTS = 6  # with those about whose first replay two clocks disagree
CLOCK_DRIFT = 1.1
REPEATS = 3  # on the same sets


class FirstSight:
    """The first replay of one candidate on one case."""

    def __init__(self, times_us: Sequence[float], calls: int) -> None:
        """`times_us` are its samples, of `calls` calls each; none if two clocks disagree."""
        self._call_us = median(times_us) / calls if times_us else math.inf
        self._calls = calls

    def is_slow(self, timed: Samples) -> bool:
        """Whether it took longer than the timed samples."""
        return self._call_us > SLOWER * usual_us(timed, self._calls)


def usual_us(timed: Samples, calls: int) -> float:
    """The time of a call in samples of about `calls` calls, or in all samples if that is less: a
    candidate may keep results for the last calls of long replays alone.
    """
    alike = [
        time_us
        for time_us, count in zip(timed.candidate_us, timed.calls, strict=True)
        if abs(count - calls) <= 1
    ]
    return min(median(samples) for samples in (alike, timed.candidate_us) if samples)


def refuse_memory(
    examination: Examination,
    renew: Callable[[], Sequence[PoolSet]],
    timed: Samples,
    cold: bool,
    alive: Callable[[], None],
) -> tuple[InputSetCheck, ...]:
    """Raises Cheated if the candidate is slower on new sets, time and again; returns the wrong sets
    of a replay that had any.

    `renew` makes new sets for the case, for one hot replay or for any number of cold ones; `alive`
    is called before every replay.
    """
    ratios = list[float]()
    for _ in range(MOST_ATTEMPTS):
        groups = _groups(list(renew()), cold)
        calls = 1 if cold else len(groups[0]) - WARM_UP_CALLS  # of a sample
        rounds = []
        for _ in range(1 + REPEATS):
            rounds.append(_round(examination, groups, cold, alive))
            if wrong := rounds[-1][-1].wrong:
                return wrong
        ratio = _first_to_others(rounds, usual_us(timed, calls) * calls)
        if ratio <= SLOWER:
            return ()
        if math.isfinite(ratio):
            ratios.append(ratio)
        if len(ratios) == ATTEMPTS:
            break
    else:
        raise Cheated("two clocks disagree about the time of its replays on new inputs")
    raise Cheated(
        "slower on inputs that it has not seen, "
        + ", ".join(f"{ratio:.2f}x" for ratio in ratios)
        + ": it keeps results from one replay to the next"
    )


def _round(
    examination: Examination,
    groups: Sequence[Sequence[PoolSet]],
    cold: bool,
    alive: Callable[[], None],
) -> list[Examined]:
    """A replay of each group, up to the first one with a wrong output."""
    replays = list[Examined]()
    for sets in groups:
        alive()
        replays.append(examination.replay(sets, cold))
        if replays[-1].wrong:
            break
    return replays


def _groups(sets: Sequence[PoolSet], cold: bool) -> list[Sequence[PoolSet]]:
    """The sets of each replay of one round."""
    size = WARM_UP_CALLS + MOST_COLD_CALLS if cold else len(sets)
    return [sets[start : start + size] for start in range(0, len(sets) - size + 1, size)]


def _first_to_others(rounds: Sequence[Sequence[Examined]], timed_us: float) -> float:
    """The time of the first round over that of the others or over `timed_us`, whichever is less;
    infinite where clocks disagreed about all of the first.

    `timed_us` was taken before new sets were computed, which may have slowed the device's clock.
    """
    first, *others = ([time_us for it in replays for time_us in it.times_us] for replays in rounds)
    if not first:
        return math.inf
    later = [time_us for times_us in others for time_us in times_us]
    return median(first) / min([CLOCK_DRIFT * timed_us, *([median(later)] if later else [])])
