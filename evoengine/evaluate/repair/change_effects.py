"""What a change does to the wrong outputs, and what that says of the changes that are left.

The statement at fault shows itself: its changes alter what is wrong, and some make it less wrong. A
statement whose changes alter nothing is seldom the one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import StrEnum
from itertools import combinations

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.records import CaseCheck, InputSetCheck


class Effect(StrEnum):
    """What a change does to the outputs of the wrong call."""

    none = "none"  # they are as wrong as before, to the last digit
    better = "better"  # fewer elements are wrong, or they are less wrong
    kept = "kept"  # as many are wrong as before, by other amounts
    worse = "worse"
    lost = "lost"  # it could not be launched, or strayed


CLEARLY_FEWER, CLEARLY_LESS = 0.98, 0.95  # of the share of wrong elements, of the error
ZEROS = 0.02  # outputs that are zero have an error of 1; nearer ones tell nothing
_SPOILT = 1.5  # times the error

# How much more often changes of the statement at fault have an effect than others of the kernel,
# among 18 wrong kernels of the half that may be looked at (benchmarks.bug_halves).
ODDS = {
    Effect.none: 0.7,
    Effect.better: 2.0,
    Effect.kept: 1.1,
    Effect.worse: 0.9,
    Effect.lost: 0.9,
}
MOST_COUNTED = 4  # of an effect: the changes of one statement are much alike
MOST_PAIRED = 6  # of the changes that make it better


def effect_of(unchanged: CaseCheck, changed: CaseCheck) -> Effect:
    """What a change did to the one input set of both checks."""
    if not changed.sets or not unchanged.sets:
        return Effect.lost
    before, after = unchanged.sets[0], changed.sets[0]
    if _figures(before) == _figures(after):
        return Effect.none
    if after.nan_count > before.nan_count or after.failing_share > before.failing_share:
        return Effect.worse
    is_zero = abs(after.rel_rmse - 1.0) < ZEROS
    fewer = after.failing_share < CLEARLY_FEWER * before.failing_share
    smaller = after.rel_rmse < CLEARLY_LESS * before.rel_rmse
    if (fewer or smaller) and not is_zero:
        return Effect.better
    return Effect.worse if after.rel_rmse > _SPOILT * before.rel_rmse else Effect.kept


def _figures(check: InputSetCheck) -> tuple[object, ...]:
    return (
        check.failing_share,
        check.rel_rmse,
        check.max_abs,
        check.nan_count,
        check.slice_rel_rmse,
        check.worst_index,
    )


class ChangeEffects:
    """The effects that were seen of one kernel's changes, by statement."""

    def __init__(self, code: KernelCode) -> None:
        self._code = code
        self._seen: defaultdict[int, Counter[Effect]] = defaultdict(Counter)
        self._better: list[tuple[float, SourceChange]] = []
        self._paired: set[tuple[SourceChange, SourceChange]] = set()

    def saw(self, change: SourceChange, unchanged: CaseCheck, changed: CaseCheck) -> None:
        """Takes note of what a change did."""
        effect = effect_of(unchanged, changed)
        for statement in self._statements(change):
            self._seen[statement][effect] += 1
        if effect is Effect.better and not changed.ok:
            before, after = unchanged.sets[0], changed.sets[0]
            left = after.failing_share / before.failing_share if before.failing_share else 1.0
            self._better.append((min(left, after.rel_rmse / before.rel_rmse), change))

    def odds(self, change: SourceChange) -> float:
        """How much likelier a change is than it was before any was seen."""
        statements = self._statements(change)
        return math.prod(map(self._odds_of, statements)) ** (1 / max(1, len(statements)))

    def pairs(self) -> Iterator[SourceChange]:
        """Each two of the changes that make it better, of different statements, made as one; each
        once.
        """
        best = [change for _, change in sorted(self._better, key=lambda item: item[0])]
        for one, other in combinations(best[:MOST_PAIRED], 2):
            apart = not set(self._statements(one)) & set(self._statements(other))
            if apart and (one, other) not in self._paired:
                self._paired.add((one, other))
                yield SourceChange(
                    one.start, one.end, one.new, one.kind, (*one.others, *other.pieces)
                )

    def _odds_of(self, statement: int) -> float:
        seen = self._seen.get(statement)
        if seen is None:
            return 1.0
        return math.prod(ODDS[effect] ** min(count, MOST_COUNTED) for effect, count in seen.items())

    def _statements(self, change: SourceChange) -> tuple[int, ...]:
        """Where the statements begin in which it stands; those of the plan by their places."""
        found = set()
        for piece in change.pieces:
            places = self._code.token_places(
                piece.start - self._code.offset, piece.end - self._code.offset
            )
            if piece.start < self._code.offset or places is None:
                found.add(-1 - piece.start)
            else:
                found.add(self._code.extents.statement(places[0])[0])
        return tuple(sorted(found))
