"""What changes do to the wrong outputs, and what that says of the changes that are left.

The statement at fault shows itself: some of its changes make the outputs less wrong, and seldom do
all of them leave the outputs as they are. Two changes of different statements that both make them
less wrong may mend a mistake of two places.
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


class ChangeEffect(StrEnum):
    """What a change does to the outputs of the wrong call."""

    none = "none"  # they are as wrong as before, to the last digit
    better = "better"  # the error is smaller
    other = "other"


# Outputs that are all zero have an error of 1, and are no better than others that are wrong.
ERROR_OF_ZEROS = 1.0
CLEARLY_LESS = 0.97  # of the error
# How much likelier the changes of a statement are after one of its changes made the error smaller,
# counted twice at most, and after one did nothing, counted where most of them do nothing. Of some
# such rules these brought the right change of 13 wrong kernels forward most.
BETTER, MOST_BETTER = 2.5, 2
NOTHING, MOST_NOTHING = 0.6, 3
MOST_PAIRED = 6  # of the changes that make the error smaller, each two of which are tried at once


def effect_of(unchanged: CaseCheck, changed: CaseCheck) -> ChangeEffect:
    """What a change did to the one input set of both checks."""
    if not changed.sets or not unchanged.sets:
        return ChangeEffect.other  # it could not be launched, or strayed
    before, after = unchanged.sets[0], changed.sets[0]
    if _figures(before) == _figures(after):
        return ChangeEffect.none
    least = min(ERROR_OF_ZEROS, before.rel_rmse)
    is_better = after.nan_count <= before.nan_count and after.rel_rmse < CLEARLY_LESS * least
    return ChangeEffect.better if is_better else ChangeEffect.other


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
        self._seen: defaultdict[int, Counter[ChangeEffect]] = defaultdict(Counter)
        self._better: list[tuple[float, SourceChange]] = []  # with the error that is left
        self._paired: set[tuple[SourceChange, SourceChange]] = set()

    def saw(self, change: SourceChange, unchanged: CaseCheck, changed: CaseCheck) -> None:
        """Takes note of what a change did."""
        effect = effect_of(unchanged, changed)
        for statement in self.statements(change):
            self._seen[statement][effect] += 1
        if effect is ChangeEffect.better and not changed.ok:
            self._better.append((changed.sets[0].rel_rmse, change))

    def odds(self, statements: tuple[int, ...]) -> float:
        """How much likelier the changes of statements are than they were before any was seen."""
        return math.prod(map(self._odds_of, statements)) ** (1 / max(1, len(statements)))

    def _odds_of(self, statement: int) -> float:
        seen = self._seen.get(statement)
        if seen is None:
            return 1.0
        if seen[ChangeEffect.better]:
            return BETTER ** min(seen[ChangeEffect.better], MOST_BETTER)
        do_nothing = 2 * seen[ChangeEffect.none] >= seen.total()
        return NOTHING ** min(seen[ChangeEffect.none], MOST_NOTHING) if do_nothing else 1.0

    def pairs(self) -> Iterator[SourceChange]:
        """Each two of the changes that leave the smallest error, of different statements, made as
        one; each once.
        """
        best = [change for _, change in sorted(self._better, key=lambda item: item[0])]
        for one, other in combinations(best[:MOST_PAIRED], 2):
            apart = not set(self.statements(one)) & set(self.statements(other))
            if apart and (one, other) not in self._paired:
                self._paired.add((one, other))
                others = (*one.others, *other.pieces)
                yield SourceChange(one.start, one.end, one.new, one.kind, others)

    def statements(self, change: SourceChange) -> tuple[int, ...]:
        """Where the statements begin in which a change stands; of the plan its own place."""
        return tuple(sorted({self._statement(piece) for piece in change.pieces}))

    def _statement(self, piece: SourceChange) -> int:
        code = self._code
        places = code.token_places(piece.start - code.offset, piece.end - code.offset)
        if piece.start < code.offset or places is None:
            return -1 - piece.start
        return code.extents.statement(places[0])[0]
