"""What checked mode on the emulator found on a candidate that a GPU judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evoengine.protocols import Report
from evoengine.records import CaseCheck, CheckedRun, Status


@dataclass(frozen=True)
class FollowedCases:
    """What was found on each case that was followed, by name.

    `fault` is the emulator's report where it found one, `problem` why cases are missing.
    """

    runs: Mapping[str, CheckedRun] = field(default_factory=dict)
    fault: Report | None = None
    problem: str = ""

    def added_to(self, report: Report) -> Report:
        """The GPU's `report` on a correct candidate with these findings; with a fault no times."""
        checks = tuple(map(self._added, report.checks))
        if self.fault is None:
            return report.model_copy(update={"checks": checks})
        changes = {
            "reason": self.fault.reason,
            "detail": self.fault.detail,
            "forensics": self.fault.forensics,
            "timings": (),
        }
        return report.model_copy(update={"status": Status.fault, "checks": checks, **changes})

    def _added(self, check: CaseCheck) -> CaseCheck:
        run = self.runs.get(check.case)
        if run is None:
            return check
        return check.model_copy(update={"checked": run, "ok": check.ok and not run.findings})
