"""All changes of a kernel, the most likely first.

How likely a change is follows from its kind: the share of mistakes that are of that kind, divided
by the number of changes of the kind that this kernel has. A kind of which there are few in the
kernel is tried through before one with many places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.call_changes import call_changes
from evoengine.evaluate.repair.header_changes import header_changes
from evoengine.evaluate.repair.index_changes import index_changes
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.mask_changes import mask_changes
from evoengine.evaluate.repair.name_changes import name_changes
from evoengine.evaluate.repair.number_changes import number_changes
from evoengine.evaluate.repair.operator_changes import operator_changes
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.source_tokens import TokenList, squeezed
from evoengine.evaluate.repair.statement_changes import statement_changes
from evoengine.evaluate.repair.term_changes import term_changes

WEIGHTS: dict[str, float] = {}
_USUAL_WEIGHT = 1.0
_CODE_CHANGES = (
    number_changes,
    operator_changes,
    name_changes,
    term_changes,
    call_changes,
    index_changes,
    statement_changes,
    mask_changes,
)


def ordered_changes(candidate: Candidate) -> list[tuple[SourceChange, float]]:
    """Every change of a candidate's source once with its likeliness, the most likely first."""
    changes = _once(candidate, _all(candidate))
    counts = Counter(change.kind for change in changes)

    def likeliness(change: SourceChange) -> float:
        return WEIGHTS.get(change.kind, _USUAL_WEIGHT) / counts[change.kind]

    rated = [(change, likeliness(change)) for change in changes]
    return sorted(rated, key=lambda item: -item[1])


def header_end(candidate: Candidate) -> int:
    """Where the device code begins in a candidate's source."""
    return len(candidate.source) - len(candidate.code.lstrip("\n"))


def _all(candidate: Candidate) -> Iterator[SourceChange]:
    end = header_end(candidate)
    yield from header_changes(candidate.source[:end])
    code = KernelCode(candidate.source, end)
    for changes in _CODE_CHANGES:
        yield from changes(code)


def _once(candidate: Candidate, changes: Iterator[SourceChange]) -> list[SourceChange]:
    """The changes without those that write the same program as one before."""
    seen: set[tuple[int, str, int]] = set()
    found = []
    for change in changes:
        old = candidate.source[change.start : change.end]
        key = _trimmed(change, old)
        if old == change.new or key in seen:
            continue
        seen.add(key)
        found.append(change)
    return found


def _trimmed(change: SourceChange, old: str) -> tuple[int, str, int]:
    """A change without what is equal at its begin and end, so that equal ones are found."""
    new, begin, end = change.new, 0, 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    return change.start + begin, new[begin : len(new) - end], change.end - end


def same_program(one: str, other: str) -> bool:
    """Whether two codes differ in layout and comments alone."""
    return squeezed(TokenList(one).tokens) == squeezed(TokenList(other).tokens)
