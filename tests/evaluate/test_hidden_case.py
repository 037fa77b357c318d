"""What is left of a report on a failure in a hidden case."""

from __future__ import annotations

from dataclasses import fields

import pytest

from evoengine.emulator.check.finding_words import words_of
from evoengine.emulator.check.findings import Finding, FindingKind, Space
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.hidden_case import failure_words, report_without_sizes, without_sizes
from evoengine.protocols import Report
from evoengine.records import CaseCheck, Status

IN_STEP = " (checking a hidden case)"
SAID = "kernel.cu:12: void rows<777>(): block: [5,0,0] Assertion `N != 777` failed."


def failed(case: str, hidden: bool) -> CaseCheck:
    return CaseCheck(case=case, hidden=hidden, ok=False, sets=())


@pytest.mark.parametrize(
    ("status", "reason", "kept"),
    [
        (Status.crash, "an illegal memory access at 0x777", "crashes in a hidden case"),
        (Status.timeout, "it ran 777000 loop rounds", "takes too long in a hidden case"),
        (
            Status.cheat,
            "input 'x777' was overwritten",
            "writes to its inputs or outside its buffers in a hidden case",
        ),
        (
            Status.launch_error,
            "a grid of 777 blocks",
            "cannot be loaded or launched in a hidden case",
        ),
        (
            Status.unsupported,
            "`mov.u32 777`",
            "uses what the emulator does not support in a hidden case",
        ),
        (Status.fault, "race: thread 777 reads shared+77 at line 7", "race in a hidden case"),
        (Status.fault, "out of bounds: thread 777 accesses", "out of bounds in a hidden case"),
        (Status.fault, "777: a kind of its own", "a fault in a hidden case"),
    ],
)
def test_a_failure_keeps_its_kind_alone(status: Status, reason: str, kept: str) -> None:
    report = Report(status=status, reason=reason + IN_STEP, detail=SAID)
    found = report_without_sizes(report)
    assert (found.status, found.reason, found.detail) == (status, kept, "")


def test_a_failed_check_counts_without_a_word_in_the_reason() -> None:
    checks = (CaseCheck(case="plain", hidden=False, ok=True, sets=()), failed("odd", True))
    report = Report(status=Status.wrong_result, reason="777 wrong", detail=SAID, checks=checks)
    found = report_without_sizes(report)
    assert (found.reason, found.detail) == ("is wrong in a hidden case", "")
    assert found.checks == checks, "the user may see them"


@pytest.mark.parametrize(
    "report",
    [
        Report(status=Status.crash, reason="an illegal access (checking plain)", detail=SAID),
        Report(status=Status.wrong_result, reason="x", detail=SAID, checks=(failed("a", False),)),
        Report(status=Status.correct, checks=(CaseCheck(case="o", hidden=True, ok=True, sets=()),)),
    ],
)
def test_what_is_said_of_other_cases_stays(report: Report) -> None:
    assert report_without_sizes(report) == report


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.correct])
def test_every_status_has_words_without_a_figure(status: Status) -> None:
    words = failure_words(status)
    assert words.endswith(" in a hidden case") and not any(letter.isdigit() for letter in words)


def test_a_refusal_loses_its_text_only_if_it_is_about_a_hidden_case() -> None:
    refusal = CandidateRefused(Status.over_limits, "block 777 is beyond 64", SAID)
    with pytest.raises(CandidateRefused) as shown, without_sizes(False):
        raise refusal
    assert shown.value is refusal
    with pytest.raises(CandidateRefused) as kept, without_sizes(True):
        raise refusal
    found = kept.value.verdict
    assert (found.status, found.reason, found.detail) == (
        Status.over_limits,
        "asks for more than the device allows in a hidden case",
        "",
    )


@pytest.mark.parametrize("kind", FindingKind)
def test_every_kind_of_finding_of_checked_mode_is_known(kind: FindingKind) -> None:
    numbers = dict.fromkeys((item.name for item in fields(Finding)), 777)
    line = words_of(Finding(**{**numbers, "kind": kind, "space": Space.SHARED}))
    words = failure_words(Status.fault, line)
    assert words != "a fault in a hidden case" and "777" not in words
