"""A verdict with the finding of a search for the change that makes the kernel right."""

from __future__ import annotations

from dataclasses import replace

from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import EvoError
from evoengine.evaluate.hidden_case import HIDDEN_CASE
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.repair_search import RepairSearch
from evoengine.evaluate.repair.wrong_inputs import WrongInputs
from evoengine.protocols import Progress
from evoengine.records import DiagnosisKind, Forensics, Status, Verdict

PHASE = "repair"


def wrong_inputs(verdict: Verdict) -> WrongInputs | None:
    """The inputs to try changes on: those that were looked at, or with which the last case was
    wrong first; of a fault, and of what one has caused on a GPU, any of its case.

    None where nothing can be said: no output is wrong and checked mode found no fault, or the case
    is hidden, of which no finding may tell.
    """
    found = verdict.forensics
    is_fault = bool(found and found.diagnoses and found.diagnoses[0].kind is DiagnosisKind.fault)
    if verdict.status is Status.wrong_result:
        wrong = _wrong_outputs(verdict)
        return wrong and replace(wrong, is_fault=is_fault)
    if not is_fault or found is None or found.case == HIDDEN_CASE:
        return None
    return WrongInputs(found.case, 0, is_fault=True, has_outputs=False)


def _wrong_outputs(verdict: Verdict) -> WrongInputs | None:
    if not verdict.checks:
        return None
    check, found = verdict.checks[-1], verdict.forensics
    if found is not None and found.number is not None and found.case != check.case:
        return WrongInputs(found.case, found.number)  # a small case, where launches take less
    numbers = [item.seed for item in check.sets if not item.ok]
    if check.ok or check.hidden or not numbers:
        return None
    return WrongInputs(check.case, min(numbers))


async def with_repair(
    verdict: Verdict,
    candidate: Candidate,
    search: RepairSearch,
    seconds: float,
    progress: Progress,
) -> Verdict:
    """`verdict` with what the search found in front of its findings; as it is where it found
    nothing, or failed: a fault of the search changes no verdict.
    """
    wrong = wrong_inputs(verdict)
    if wrong is None:
        return verdict
    told = tuple(item.sentence for item in verdict.forensics.diagnoses) if verdict.forensics else ()
    try:
        found = await search.find(candidate, wrong, seconds, progress, told)
    except EvoError as error:
        progress(f"note: the search for a change was given up: {error}")
        return verdict
    phases_s = {**verdict.phases_s, PHASE: found.seconds}
    change = finding(candidate, found, verdict.forensics)
    if change is None:
        return verdict.model_copy(update={"phases_s": phases_s})
    known = verdict.forensics or Forensics(case=wrong.case)
    findings = known.around(change) if change.evidence["may avoid"] else known.behind(change)
    return verdict.model_copy(update={"forensics": findings, "phases_s": phases_s})
