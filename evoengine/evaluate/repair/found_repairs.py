"""What a search for the change that makes a kernel right has found and tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from evoengine.evaluate.repair.source_change import SourceChange

# A change with which warps run so many times the instructions of another one mends by doing work
# over again, which is seldom what was meant.
MUCH_WORK = 1.1


@dataclass
class FoundRepairs:
    """The changes that make every output right, as they were found, and what was tried."""

    changes: list[SourceChange] = field(default_factory=list)
    # those of them that are wrong with other sizes or tunables
    by_chance: list[SourceChange] = field(default_factory=list)
    # those with which lines of the kernel do not run any more, and no others do
    skipping: list[SourceChange] = field(default_factory=list)
    # what the kernel does with a change, in units of what it does without; where it was counted
    work: dict[SourceChange, float] = field(default_factory=dict)
    known: int = 0  # changes of the kernel altogether
    launched: int = 0
    compilations: int = 0
    refuted: int = 0  # right on the wrong inputs, wrong elsewhere
    seconds: float = 0.0

    def likeliest_first(
        self, may_avoid: Callable[[SourceChange], bool]
    ) -> tuple[list[SourceChange], list[SourceChange]]:
        """The changes that tell what is wrong, and those that need not, as they may avoid the
        mistake or are right by chance. Of each those come last that do much more work than another
        one, or have another one as a part.
        """
        doubtful = [*self.by_chance, *self.skipping]
        telling = [item for item in self.changes if item not in doubtful and not may_avoid(item)]
        others = [item for item in self.changes if item not in telling]
        return self._ordered(telling), self._ordered(others)

    def _ordered(self, changes: list[SourceChange]) -> list[SourceChange]:
        least = min((self.work[item] for item in changes if item in self.work), default=1.0)

        def is_unlikely(change: SourceChange) -> bool:
            works_again = self.work.get(change, least) > MUCH_WORK * least
            return works_again or any(other.is_part_of(change) for other in changes)

        return sorted(changes, key=is_unlikely)
