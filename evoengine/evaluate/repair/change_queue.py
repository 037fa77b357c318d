"""The changes of a kernel that are left to try, in an order that follows what those before did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.avoiding_change import may_avoid
from evoengine.evaluate.repair.change_effects import ChangeEffects
from evoengine.evaluate.repair.change_order import header_end, kernel_code, ordered_changes
from evoengine.evaluate.repair.plan_changes import PlanChanges, is_of_plan
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import SwitchedChange, switched, that_fit
from evoengine.evaluate.repair.told_changes import told_by
from evoengine.records import CaseCheck

FIRST_TOGETHER, MOST_TOGETHER = 24, 96  # changes in one compilation; the first ones are likely
# A change that needs a compilation of its own takes about as long as so many that share one.
COST_ALONE = 12.0


@dataclass
class LaunchedChanges:
    """What changes of one code write for the wrong call; those that end a process are left out."""

    unchanged: CaseCheck | None = None  # what the kernel as it is writes
    checks: list[tuple[SourceChange, CaseCheck]] = field(default_factory=list)
    # one of them changes the kernel before it is chosen, so that none was launched
    is_spoiled: bool = False

    @property
    def right_ones(self) -> list[SourceChange]:
        """The changes with which all of it is right."""
        return [change for change, check in self.checks if check.ok]

    def work_with(self, change: SourceChange) -> float | None:
        """What the kernel does with a change, in units of what it does without: of all its
        instructions, or of those of its longest warps, whichever has grown more. None where they
        were not counted.
        """
        before = self.unchanged.work if self.unchanged is not None else None
        after = next((check.work for item, check in self.checks if item == change), None)
        if before is None or after is None:
            return None
        return max(
            after.instructions / max(1, before.instructions),
            after.of_longest_warps / max(1, before.of_longest_warps),
        )


@dataclass(frozen=True)
class _Waiting:
    """A change with its likeliness for its cost, before any was launched."""

    change: SourceChange
    alternative: SwitchedChange | None
    is_of_plan: bool
    worth: float
    statements: tuple[int, ...]


class ChangeQueue:
    """Hands out changes that are compiled together, the likeliest first."""

    def __init__(
        self,
        candidate: Candidate,
        told: Sequence[str] = (),
        likes: Sequence[Candidate] = (),
        only_likes: bool = False,
    ) -> None:
        """`told` are the sentences of the verdict's findings, the most telling first; `likes` are
        kernels of its task that are right, and with `only_likes` no change is tried that none has.
        """
        self._code = kernel_code(candidate)
        self._source, self._header_end = candidate.source, header_end(candidate)
        self._sentences = tuple(told)
        self._told = told_by(self._code, told)
        self._effects = ChangeEffects(self._code)
        self._unchanged: CaseCheck | None = None
        self._together = FIRST_TOGETHER
        self._alone: list[SourceChange] = []  # that come before the next ones which share a code
        self._of_plan: tuple[SourceChange, ...] = ()  # likewise
        self._groups: list[list[SwitchedChange]] = []  # that come before all others
        self._spoiling: set[tuple[str, tuple[int, ...]]] = set()  # kinds at their statements
        ordered = ordered_changes(candidate, likes, only_likes)
        self._left = [self._waiting(*item) for item in ordered]

    def __len__(self) -> int:
        return len(self._left)

    def taken(self) -> Sequence[SwitchedChange] | PlanChanges | SourceChange | None:
        """The next changes, those that can share a compilation or need none, or a single one; None
        at the end.
        """
        if self._groups:
            return self._groups.pop(0)
        if self._of_plan:
            taken, self._of_plan = PlanChanges(self._of_plan), ()
            return taken
        if self._alone:
            return self._alone.pop(0)
        self._left.sort(key=lambda item: -item.worth * self._effects.odds(item.statements))
        together: list[SwitchedChange] = []
        of_plan: list[SourceChange] = []
        next_time: list[_Waiting] = []
        count = 0
        for item in self._left:
            if max(len(together), len(of_plan)) == self._together:
                break
            count += 1
            if item.is_of_plan:
                of_plan.append(item.change)
            elif item.alternative is None or self._spoils(item):
                self._alone.append(item.change)
            elif any(map(item.alternative.crosses, together)):
                next_time.append(item)
            else:
                together.append(item.alternative)
        self._left[:count] = next_time
        self._together = min(2 * self._together, MOST_TOGETHER)
        self._of_plan = tuple(of_plan)
        if together:
            return together
        return self.taken() if self._of_plan or self._alone else None

    def saw(self, launched: LaunchedChanges) -> None:
        """Puts what is left in order by what was launched."""
        self._unchanged = launched.unchanged or self._unchanged
        if self._unchanged is None:
            return
        for change, check in launched.checks:
            if check.case == self._unchanged.case:
                self._effects.saw(change, self._unchanged, check)
        likeliest = max((item.worth for item in self._left), default=1.0)
        self._left += [self._waiting(change, likeliest) for change in self._effects.pairs()]

    def split(self, changes: Sequence[SourceChange]) -> None:
        """Hands `changes` out again in two halves, by place: one of them changes the kernel for all
        that share its code. Such a one, and others of its kind at its statement, are compiled
        alone.
        """
        if len(changes) == 1:
            self._spoiling.add((changes[0].kind, self._effects.statements(changes[0])))
            self._alone.append(changes[0])
            return
        found = [(change, switched(self._code, change)) for change in changes]
        self._alone += [change for change, item in found if item is None]
        ordered = sorted((item for _, item in found if item), key=lambda item: item.start)
        middle = len(ordered) // 2
        self._groups += [half for half in (ordered[:middle], ordered[middle:]) if half]

    def alone(self, changes: Sequence[SourceChange]) -> None:
        """Hands `changes` out once more, each alone."""
        self._alone += changes

    def again(self, changes: Sequence[SourceChange]) -> None:
        """Hands `changes` out once more, before all others."""
        found = [(change, switched(self._code, change)) for change in changes]
        together, others = that_fit([item for _, item in found if item is not None])
        self._groups += [together] if together else []
        self._alone += [change for change, item in found if item is None or item in others]

    def take_parts_first(self, change: SourceChange) -> bool:
        """Whether changes are left that are a part of one which is right; they are handed out
        before all others, as one of them may be all that is wrong.
        """
        parts = [item.change for item in self._left if item.change.is_part_of(change)]
        self._left = [item for item in self._left if item.change not in parts]
        self.again(parts)
        return bool(parts)

    def may_avoid(self, change: SourceChange) -> bool:
        """Whether a change that is right may only keep the mistake from showing."""
        return may_avoid(self._source, change, self._sentences)

    def _spoils(self, item: _Waiting) -> bool:
        return (item.change.kind, item.statements) in self._spoiling

    def _waiting(self, change: SourceChange, likeliness: float) -> _Waiting:
        alternative = switched(self._code, change)
        of_plan = is_of_plan(self._source, self._header_end, change)
        cost = COST_ALONE if alternative is None and not of_plan else 1.0
        statements = self._effects.statements(change)
        worth = likeliness / cost * self._told.odds(change.kind, statements)
        return _Waiting(change, alternative, of_plan, worth, statements)
