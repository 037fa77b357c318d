"""A launch plan that cannot be built for a hidden case: told with a size of our own, and mended.

Of the hidden case nothing may be told. The sizes here are ours: those of a shown case with one
dimension as small as the task allows, whatever its hidden cases are. A grid that is rounded down
has no block there.
"""

from __future__ import annotations

import re

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import NO_EXTENT, bind, plan_is_refused
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, EvoError
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.repair_search import RepairSearch
from evoengine.evaluate.repair.repaired_verdict import PHASE
from evoengine.protocols import Progress
from evoengine.records import Diagnosis, DiagnosisKind, Forensics, Status, Verdict
from evoengine.task.schema import Task
from evoengine.task.small_cases import least_versions

_ROUNDED_DOWN = re.compile(r"[\w.)]+ *// *[\w.(]+")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def told_of_plan(
    refusal: Verdict, candidate: Candidate, task: Task, limits: DeviceLimits
) -> Verdict:
    """`refusal` with why its launch plan cannot be built as finding, where it has an extent below
    one; with sizes of our own where that of a hidden case is.
    """
    if refusal.status is not Status.rejected:
        return refusal
    if NO_EXTENT in refusal.reason:
        return _with_finding(refusal, candidate, "", refusal.reason)
    if not plan_is_refused(refusal.reason):
        return refusal
    for name, sizes in least_versions(task):
        ours = task.model_copy(update={"cases": {**task.cases, name: sizes}})
        try:
            bind(candidate, ours, name, limits)
        except CandidateError as error:
            if NO_EXTENT in str(error):
                return _with_finding(refusal, candidate, name, str(error))
    return refusal


def _with_finding(refusal: Verdict, candidate: Candidate, case: str, error: str) -> Verdict:
    sentence = f"The launch plan cannot be built: {error.splitlines()[0]}"
    found = re.search(rf"{NO_EXTENT}[^']*'([^']*)'", error)
    rounded = _rounded_down(candidate, found[1]) if found else ""
    if rounded:
        sentence += (
            f"; {rounded!r} rounds down, so that no block has what is left over (the tail is never"
            " written): a size is to be rounded up there, as by ceil_div"
        )
    diagnosis = Diagnosis(kind=DiagnosisKind.plan, sentence=f"{sentence}.", share=0.0)
    return refusal.model_copy(
        update={"forensics": Forensics(case=case or "the plan", diagnoses=(diagnosis,))}
    )


def _rounded_down(candidate: Candidate, formula: str) -> str:
    """The first division in a formula, or in the values that it is made of, that rounds down."""
    known, left = dict(candidate.plan.let), [formula]
    while left:
        text = str(left.pop(0))
        if found := _ROUNDED_DOWN.search(text):
            return found[0]
        left += [str(known.pop(name)) for name in _NAME.findall(text) if name in known]
    return ""


async def with_plan_mended(
    refusal: Verdict,
    candidate: Candidate,
    search: RepairSearch,
    seconds: float,
    progress: Progress,
) -> Verdict:
    """`refusal` of a plan that has a finding, with the change of the plan with which every output
    is right in front of it, if there is one.
    """
    known = refusal.forensics
    if known is None or seconds <= 0:
        return refusal
    try:
        found = await search.find_in_plan(candidate, seconds, progress)
    except EvoError as error:
        progress(f"note: the search for a change was given up: {error}")
        return refusal
    change = finding(candidate, found, known)
    return refusal.model_copy(
        update={
            "forensics": known if change is None else known.behind(change),
            "phases_s": {**refusal.phases_s, PHASE: found.seconds},
        }
    )
