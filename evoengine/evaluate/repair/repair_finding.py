"""The finding that follows from a change that makes a kernel right."""

from __future__ import annotations

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.avoiding_change import may_avoid
from evoengine.evaluate.repair.change_order import kernel_code
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import switched
from evoengine.evaluate.repair.words.change_meaning import meaning
from evoengine.evaluate.repair.words.change_place import ChangePlace, place_of
from evoengine.evaluate.repair.words.changed_text import LONGEST, ChangedText, quoted
from evoengine.records import Diagnosis, DiagnosisKind, Forensics

# what the outputs show of a mistake, by the kind of a finding
_EFFECTS = {
    DiagnosisKind.never_written: "so that elements of the outputs are never written",
    DiagnosisKind.race: "so that launches on the same inputs differ (a race)",
    DiagnosisKind.state: "so that only the first launch is right",
    DiagnosisKind.reads_old_values: "so that values are read that were never written",
    DiagnosisKind.not_finite: "so that infinities or NaN are written",
}
_SHORTEST = 8  # shorter ones are shown with some of their line


def finding(
    candidate: Candidate, found: FoundRepairs, known: Forensics | None = None
) -> Diagnosis | None:
    """What the changes say of the candidate, with what is `known` of its outputs; None without
    one.
    """
    if not found.changes:
        return None
    told = tuple(item.sentence for item in known.diagnoses) if known is not None else ()
    telling, hiding = found.likeliest_first(lambda it: may_avoid(candidate.source, it, told))
    change, *others = [*telling, *hiding]
    old, new = _texts(candidate, change)
    line = change.line(candidate.source)
    more = f" ({len(others)} other change{'s' * (len(others) > 1)} would, too)" if others else ""
    if change in found.by_chance:
        more += ", but not with other sizes or tunables"
    elif not telling:
        more += ", which may only keep the mistake from showing"
    return Diagnosis(
        kind=DiagnosisKind.changed_source,
        sentence=_sentence(candidate, change, old, new, more, known),
        share=1.0,
        evidence={
            "line": line,
            "old": old,
            "new": new,
            "change": change.kind,
            "others": [
                {"line": other.line(candidate.source), "new": _texts(candidate, other)[1]}
                for other in others
            ],
            "launched": found.launched,
            "may avoid": not telling,
        },
    )


def _effect(known: Forensics | None) -> str:
    """What the outputs show, in words that follow the mistake; may be empty."""
    kinds = [item.kind for item in known.diagnoses[:2]] if known is not None else []
    return "".join(f", {_EFFECTS[kind]}" for kind in kinds if kind in _EFFECTS)


def _sentence(
    candidate: Candidate,
    change: SourceChange,
    old: str,
    new: str,
    more: str,
    known: Forensics | None,
) -> str:
    code = kernel_code(candidate)
    in_header = change.start < code.offset
    place = ChangePlace(target="the launch plan") if in_header else place_of(code, change)
    text = ChangedText(change, candidate.source[change.start : change.end], place, (old, new))
    first = known.diagnoses[0].kind if known is not None and known.diagnoses else None
    alike = f", as {change.like} has it," if change.like else ""
    followed = ", and no access is at fault" if first is DiagnosisKind.fault else ""
    return (
        f"Line {change.line(candidate.source)}: with {quoted(new)} in place of {quoted(old)}"
        f"{alike}{_along(candidate, change)} every output of every case is right{followed}{more}:"
        f" {meaning(text)}{_effect(known)}."
    )


def _along(candidate: Candidate, change: SourceChange) -> str:
    """What is changed along with it, where a mistake stands in several places."""
    if not change.others:
        return ""
    other = change.others[0]
    old = candidate.source[other.start : other.end]
    if {item.new for item in change.pieces} == {change.new}:
        count = len(change.others)
        return f" and alike in {count} other place{'s' * (count > 1)}"
    return f", and in line {other.line(candidate.source)} {quoted(other.new)} for {quoted(old)},"


def _texts(candidate: Candidate, change: SourceChange) -> tuple[str, str]:
    """What stands there before and after, as a whole value or statement where it is short."""
    code = kernel_code(candidate)
    whole = switched(code, change)
    if whole is not None and _SHORTEST <= whole.end - whole.start <= LONGEST:
        return candidate.source[whole.start : whole.end], whole.new
    start, end = _grown(code, change)
    before, after = candidate.source[start : change.start], candidate.source[change.end : end]
    return candidate.source[start:end], before + change.new + after


def _grown(code: KernelCode, change: SourceChange) -> tuple[int, int]:
    """The change with some of its line on both sides, so that it can be found."""
    source = code.source
    begin = source.rfind("\n", 0, change.start) + 1
    end = source.find("\n", change.end)
    end = len(source) if end < 0 else end
    return max(begin, change.start - 30), min(end, change.end + 30)
