"""What checked mode on the emulator finds, as the first finding of a verdict.

Of a candidate that failed on a GPU it comes in front of what its verdict says of it; of a fault it
is the reason, too, so that the findings of every wrong kernel are in one place.

A GPU shows that an output is wrong, or that memory outside the buffers was touched. The emulator
names the lines of a race, of an access out of bounds, of a copy that was not waited for.
"""

from __future__ import annotations

from evoengine.evaluate.hidden_case import HIDDEN_CASE
from evoengine.protocols import Report
from evoengine.records import Diagnosis, DiagnosisKind, Forensics, Status

# What such a fault may cause. Nobody has to wait for it: the verdict is the same without it.
CAUSED = frozenset({Status.wrong_result, Status.crash, Status.timeout, Status.cheat})
WAIT_S = 20.0  # the packaged seeds take seconds


def with_fault(report: Report, fault: Report | None) -> Report:
    """`report` on a candidate that failed, with `fault`, the emulator's report, told first."""
    if fault is None:
        return report
    found = findings_of(fault)
    assert found is not None
    known = report.forensics or found.model_copy(update={"diagnoses": ()})
    return report.model_copy(update={"forensics": known.behind(found.diagnoses[0])})


def findings_of(report: Report) -> Forensics | None:
    """The findings of a report; that of a fault on a case is its reason, where none was found in
    the open.
    """
    is_fault = report.status is Status.fault and not all(check.ok for check in report.checks)
    if not is_fault or report.forensics is not None:
        return report.forensics
    return Forensics(case=_case_of(report), diagnoses=(_told(report),))


def _told(fault: Report) -> Diagnosis:
    return Diagnosis(kind=DiagnosisKind.fault, sentence=fault.reason, share=0.0)


def _case_of(fault: Report) -> str:
    found = next(check for check in fault.checks if not check.ok)
    return HIDDEN_CASE if found.hidden else found.case
