"""What checked mode on the emulator finds on a candidate that failed on a GPU, in front of what its
verdict says of it.

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
    told = Diagnosis(kind=DiagnosisKind.fault, sentence=fault.reason, share=0.0)
    known = report.forensics or Forensics(case=_case_of(fault))
    return report.model_copy(update={"forensics": known.behind(told)})


def _case_of(fault: Report) -> str:
    found = next(check for check in fault.checks if not check.ok)
    return HIDDEN_CASE if found.hidden else found.case
