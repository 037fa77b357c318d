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
from evoengine.evaluate.repair.change_evidence import ChangeEvidence, Evidence
from evoengine.evaluate.repair.condition_changes import condition_changes
from evoengine.evaluate.repair.counter_changes import counter_changes
from evoengine.evaluate.repair.coupled_changes import coupled_changes
from evoengine.evaluate.repair.element_changes import element_changes
from evoengine.evaluate.repair.header_changes import header_changes
from evoengine.evaluate.repair.index_changes import index_changes
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.like_statement_changes import like_statement_changes
from evoengine.evaluate.repair.mask_changes import mask_changes
from evoengine.evaluate.repair.moved_changes import moved_changes
from evoengine.evaluate.repair.name_changes import name_changes
from evoengine.evaluate.repair.number_changes import number_changes
from evoengine.evaluate.repair.operator_changes import operator_changes
from evoengine.evaluate.repair.part_changes import part_changes
from evoengine.evaluate.repair.plan_value_changes import plan_value_changes
from evoengine.evaluate.repair.range_changes import range_changes
from evoengine.evaluate.repair.sibling_changes import sibling_changes
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.statement_changes import statement_changes
from evoengine.evaluate.repair.stride_changes import stride_changes
from evoengine.evaluate.repair.term_changes import term_changes
from evoengine.evaluate.repair.unread_changes import unread_changes

# How many mistakes of a kind there were among 171 planted ones, and a half; others are guessed.
WEIGHTS: dict[str, float] = {
    "name for another as a divisor, int": 1.0,
    "name for another as an index, int": 1.0,
    "name for another in a loop, int": 1.0,
    "name for another compared, int": 1.0,
    "name for another as a factor, int": 1.0,
    "name for another elsewhere, int": 1.0,
    "name for another as a divisor, float": 0.7,
    "name for another as an index, float": 0.7,
    "name for another in a loop, float": 0.7,
    "name for another compared, float": 0.7,
    "name for another as a factor, float": 0.7,
    "name for another elsewhere, float": 0.7,
    "parameter for a name as a divisor, int": 0.7,
    "parameter for a name as an index, int": 0.7,
    "parameter for a name in a loop, int": 0.7,
    "parameter for a name compared, int": 0.7,
    "parameter for a name as a factor, int": 0.7,
    "parameter for a name elsewhere, int": 0.7,
    "term too many": 14.5,
    "factor too many": 6.5,
    "function of a family": 6.5,
    "number doubled in a loop": 5.5,
    "bound of whole tiles": 3.5,
    "expression for a name": 3.5,
    "grid rounded down": 3.5,
    "number halved in a loop": 3.5,
    "parameter for another, int": 3.5,
    "args exchanged": 2.5,
    "brackets dropped": 2.5,
    "call missing, of the kernel": 2.5,
    "call missing, root": 1.5,
    "call missing, rounding": 1.5,
    "call missing, sign": 1.0,
    "call missing, reciprocal": 0.7,
    "divisor missing, int": 2.5,
    "factor missing, int": 2.5,
    "float by one": 2.5,
    "index of another array": 2.5,
    "name for the grid": 2.5,
    "name of the same declaration, int": 2.5,
    "names exchanged, int": 2.5,
    "number doubled elsewhere": 2.5,
    "number one less in a loop": 2.5,
    "sign": 2.5,
    "statement missing, other lanes": 2.5,
    "statement missing, other number": 0.7,
    "function that is alike": 1.5,
    "number for a name at the begin of a loop": 1.5,
    "times a constant": 2.5,
    "bracket moved": 2.0,
    "comparison by one": 2.0,
    "float zero to infinity": 2.0,
    "two conversions dropped": 2.0,
    "arguments exchanged": 1.5,
    "assignment": 1.5,
    "assignments": 1.5,
    "bound of the mask missing": 1.5,
    "call dropped": 1.5,
    "cast dropped": 1.5,
    "factor missing, float": 1.5,
    "factor of too many terms": 1.5,
    "function of the kernel": 0.5,
    "grid by one": 1.5,
    "guard missing": 1.5,
    "limit missing": 1.5,
    "mask of other positions": 1.5,
    "member of a vector": 1.5,
    "name for a number": 1.5,
    "number for a name elsewhere": 1.5,
    "number for a name in a loop": 1.5,
    "number halved elsewhere": 1.5,
    "one less elsewhere": 1.5,
    "one more in an index": 1.5,
    "power of two in the plan": 1.5,
    "quotient rounded down": 1.5,
    "square missing": 1.5,
    "summand missing elsewhere, int": 1.5,
    "summand missing in an index, int": 1.5,
    "summand missing, float": 1.5,
    "swizzle missing": 1.5,
    "times a number": 1.5,
    "type of the kernel": 1.5,
    "value negated": 1.5,
    "axis of the grid": 1.0,
    "barrier missing": 1.0,
    "condition too many": 1.0,
    "conversion dropped": 1.0,
    "grid without a limit": 1.0,
    "index of the same array": 1.0,
    "name that is alike, int": 1.0,
    "negation dropped": 1.0,
    "pointer for another, pointer": 1.0,
    "rescaling missing": 1.0,
    "return dropped": 1.0,
    "term of another place, int": 1.0,
    "array for another, array": 0.7,
    "condition dropped": 0.7,
    "condition of another place": 0.7,
    "divisor missing, float": 0.7,
    "float of the kernel": 0.7,
    "name of the line, int": 0.7,
    "names exchanged, array": 0.7,
    "names exchanged, float": 0.7,
    "operator": 0.7,
    "statement missing, other name": 0.7,
    "term of another place, float": 0.7,
    "block for thread": 0.5,
    "name for another, in a whole statement": 1.5,
    "name for another, in all places": 1.5,
    "square of another": 1.5,
    "square not centred": 1.5,
    "layout of two": 2.0,
    "statement missing, beside its like": 2.5,
    "unread in place of a number": 2.5,
    "factor that is read nowhere": 2.5,
    "summand that is read nowhere": 2.5,
    "condition of a value missing": 1.0,
    "bound missing": 1.0,
    "clamp missing": 1.0,
    "reset missing": 1.5,
    "row of an index missing": 2.0,
    "stride of the other one": 1.5,
    "swizzle missing, of another name": 1.0,
    "index with another name": 1.0,
    "operand negated": 1.0,
    "conversions with bits dropped": 1.5,
    "range of a loop": 1.5,
    "case of a flag missing": 1.5,
    "index that comes back": 1.0,
    "begin of a row missing": 1.5,
    "term moved": 2.5,
    "terms exchanged": 1.5,
    "coordinates of a lane": 1.5,
}
# How much evidence counts. Of a kernel that has a name that nothing reads, half of the mistakes are
# taken to be that; with the other share the right changes of the same mistakes come early.
UNUSED_SHARE, FAMILIAR_SHARE = 0.5, 0.3
_USUAL_WEIGHT = 0.3
MOST_CHANGES = 12000  # of a kernel: more are never tried in the time there is
_CODE_CHANGES = (
    number_changes,
    operator_changes,
    name_changes,
    term_changes,
    call_changes,
    index_changes,
    statement_changes,
    mask_changes,
    coupled_changes,
    sibling_changes,
    unread_changes,
    condition_changes,
    range_changes,
    moved_changes,
    stride_changes,
    element_changes,
    like_statement_changes,
    part_changes,
    counter_changes,
)


def ordered_changes(candidate: Candidate) -> list[tuple[SourceChange, float]]:
    """Every change of a candidate's source once with its likeliness, the most likely first."""
    changes = _once(candidate, _all(candidate))
    evidence = ChangeEvidence(kernel_code(candidate))
    classes = [(change.kind, evidence.of(change)) for change in changes]
    counts = Counter(classes)
    has_unused = any(found.uses_unused for _, found in classes)
    rated = [
        (change, _weight(*found, has_unused) / counts[found])
        for change, found in zip(changes, classes, strict=True)
    ]
    return sorted(rated, key=lambda item: -item[1])[:MOST_CHANGES]


def _weight(kind: str, evidence: Evidence, has_unused: bool) -> float:
    """The share of mistakes that are of a kind and have this evidence; `has_unused` says whether
    the kernel has a name that nothing reads.
    """
    unused = 1.0
    if has_unused:
        unused = UNUSED_SHARE if evidence.uses_unused else 1 - UNUSED_SHARE
    familiar = FAMILIAR_SHARE if evidence.is_familiar else 1 - FAMILIAR_SHARE
    return WEIGHTS.get(kind, _USUAL_WEIGHT) * unused * familiar


def header_end(candidate: Candidate) -> int:
    """Where the device code begins in a candidate's source."""
    return len(candidate.source) - len(candidate.code.lstrip("\n"))


def kernel_code(candidate: Candidate) -> KernelCode:
    """The device code of a candidate, with the names of its tunables."""
    return KernelCode(candidate.source, header_end(candidate), tuple(candidate.tunables))


def _all(candidate: Candidate) -> Iterator[SourceChange]:
    end = header_end(candidate)
    yield from header_changes(candidate.source[:end])
    yield from plan_value_changes(candidate.source[:end])
    code = kernel_code(candidate)
    for changes in _CODE_CHANGES:
        yield from changes(code)


def _once(candidate: Candidate, changes: Iterator[SourceChange]) -> list[SourceChange]:
    """The changes without those that write the same program as one before."""
    seen: set[tuple[tuple[int, str, int], ...]] = set()
    found = []
    for change in changes:
        olds = [candidate.source[item.start : item.end] for item in change.pieces]
        key = tuple(sorted(map(_trimmed, change.pieces, olds)))
        changes_nothing = any(
            item.new == old for item, old in zip(change.pieces, olds, strict=True)
        )
        if key in seen or changes_nothing:
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
