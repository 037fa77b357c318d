"""What a verdict says of a hidden case: that one fails and how, never where or with which figures.

A generator reads these texts. Whatever a candidate can choose must not be among them: a line, a
name, an index or a formula could stand for a size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.protocols import Report
from evoengine.records import Diagnosis, DiagnosisKind, Forensics, Status

HIDDEN_CASE = "a hidden case"
_WORDS = {
    Status.rejected: "is not allowed",
    Status.compile_error: "does not compile",
    Status.unsupported: "uses what the emulator does not support",
    Status.over_limits: "asks for more than the device allows",
    Status.launch_error: "cannot be loaded or launched",
    Status.crash: "crashes",
    Status.timeout: "takes too long",
    Status.wrong_result: "is wrong",
    Status.cheat: "writes to its inputs or outside its buffers",
}
# What checked mode finds, as its lines begin.
_FAULTS = (
    "race",
    "same address",
    "out of bounds",
    "misaligned",
    "uninitialised",
    "async copy",
    "divergent barrier",
    "mixed barrier",
    "deadlock",
)
# What may be said of a wrong output in a hidden case: few phrases, without figures and places.
_HIDDEN_DIAGNOSES = {
    DiagnosisKind.race: (
        "Launches on the same inputs differ: a race, or a read of memory that was not written."
    ),
    DiagnosisKind.state: "Only the first launch is right: something is kept between launches.",
    DiagnosisKind.reads_old_values: "It depends on what its buffers held before.",
    DiagnosisKind.never_written: "Elements are never written.",
    DiagnosisKind.not_finite: "Values are not finite.",
    DiagnosisKind.low_precision: "Its precision is too low.",
}


@contextmanager
def without_sizes(hidden: bool) -> Iterator[None]:
    """With `hidden`, a refusal that is raised inside keeps its status and loses all else."""
    try:
        yield
    except CandidateRefused as refused:
        if not hidden:
            raise
        status = refused.verdict.status
        raise CandidateRefused(status, failure_words(status)) from None


def report_without_sizes(report: Report) -> Report:
    """`report` without the reason, the detail and the output of a failure in a hidden case; of what
    forensics found, one phrase of a few.

    Its checks keep their figures, for the user.
    """
    if report.status is Status.correct or not _is_about_hidden(report):
        return report
    return report.model_copy(
        update={
            "reason": failure_words(report.status, report.reason),
            "detail": "",
            "forensics": report.forensics and forensics_without_sizes(report.forensics),
        }
    )


def forensics_without_sizes(found: Forensics) -> Forensics:
    """What was found out about a hidden case, as one phrase of a few."""
    kinds = [item.kind for item in found.diagnoses if item.kind in _HIDDEN_DIAGNOSES]
    said = tuple(
        Diagnosis(kind=kind, sentence=_HIDDEN_DIAGNOSES[kind], share=1.0) for kind in kinds[:1]
    )
    return Forensics(case=HIDDEN_CASE, diagnoses=said)


def failure_words(status: Status, reason: str = "") -> str:
    """What may be said of a failure in a hidden case: of a fault, also the kind in `reason`."""
    if status is Status.fault:
        kind = next((kind for kind in _FAULTS if reason.startswith(f"{kind}:")), "a fault")
        return f"{kind} in {HIDDEN_CASE}"
    return f"{_WORDS.get(status, 'fails')} in {HIDDEN_CASE}"


def _is_about_hidden(report: Report) -> bool:
    """Whether a hidden case ended the job: its check failed, or the reason names its step."""
    failed = [check for check in report.checks if not check.ok]
    return HIDDEN_CASE in report.reason or any(check.hidden for check in failed)
