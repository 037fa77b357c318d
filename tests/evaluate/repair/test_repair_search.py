"""A wrong kernel is repaired by the change that was planted, on the emulator, end to end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import CorpusKernel, PlantedBug, bug_manifest
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import WorkerError
from evoengine.evaluate.hidden_case import HIDDEN_CASE
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_search import RepairSearch
from evoengine.evaluate.repair.repaired_verdict import with_repair, wrong_inputs
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs
from evoengine.protocols import Progress
from evoengine.records import (
    CaseCheck,
    Diagnosis,
    DiagnosisKind,
    Forensics,
    InputSetCheck,
    Status,
    Verdict,
)
from tests.evaluate.kept_fork_server import kept
from tests.evaluate.repair.corpus_executor import corpus_executor

LONG_ENOUGH_S = 400.0  # a search ends when it has found a change; a loaded machine is slow
# small kernels with one mistake each: corpus, name
REPAIRED = [
    ("bugs_second", "softmax_base_two"),
    ("bugs_second", "scan_last_step_missing"),
    ("bugs_second", "scatter_overwrites"),
    ("bugs_second", "transpose_bias_of_other_axis"),
    ("bugs_fourth", "lanes_sum_over_two_rows"),
    ("bugs_fourth", "tiles_scores_of_half_the_columns"),
]
FAULT = ("bugs_second", "softmax_no_barrier")


def planted(corpus: str, name: str) -> tuple[Path, PlantedBug]:
    folder = ROOT / "tests" / corpus
    return folder, bug_manifest(folder).bugs[name]


def judged(
    entry: CorpusKernel, folder: Path, repair_s: float, progress: Progress = lambda _: None
) -> Verdict:
    """The verdict on the emulator, with a search for a change."""

    async def run() -> Verdict:
        executor = corpus_executor(entry.task, folder, repair_s)
        try:
            await executor.start()
            return await executor.evaluate(entry.candidate(folder), progress)
        finally:
            await executor.close()

    return kept().run(run())


@pytest.mark.timeout(600)
@pytest.mark.sampled("corpus", one_in=12)
@pytest.mark.parametrize(("corpus", "name"), REPAIRED)
def test_the_planted_change_is_found_and_said_first(corpus: str, name: str) -> None:
    folder, bug = planted(corpus, name)
    said: list[str] = []
    verdict = judged(bug, folder, LONG_ENOUGH_S, said.append)
    assert verdict.status is Status.wrong_result
    assert verdict.forensics is not None
    first = verdict.forensics.diagnoses[0]
    assert first.kind is DiagnosisKind.changed_source, (
        first.sentence,
        said[-5:],
        [it for it in said if "note" in it],
    )
    assert first.evidence["line"] in bug.planted_lines(folder)
    assert "every output of every case is right" in first.sentence
    assert bug.is_named_by([first.sentence]) or name == "lanes_sum_over_two_rows"
    assert verdict.phases_s["repair"] > 0


@pytest.mark.timeout(600)
def test_after_a_fault_a_change_is_found_with_which_no_access_is_at_fault() -> None:
    """Its outputs may be right without it: the barrier that is missing is needed on a GPU alone."""
    folder, bug = planted(*FAULT)
    verdict = judged(bug, folder, LONG_ENOUGH_S)
    assert verdict.status is Status.fault
    assert verdict.forensics is not None
    first, second = verdict.forensics.diagnoses
    assert first.kind is DiagnosisKind.changed_source, first.sentence
    assert "every output of every case is right, and no access is at fault" in first.sentence
    assert (second.kind, second.sentence) == (DiagnosisKind.fault, verdict.reason)


@pytest.mark.timeout(300)
def test_without_time_for_it_nothing_is_looked_for() -> None:
    folder, bug = planted("bugs_second", "scan_last_step_missing")
    verdict = judged(bug, folder, 0.0)
    assert verdict.forensics is not None
    kinds = [item.kind for item in verdict.forensics.diagnoses]
    assert DiagnosisKind.changed_source not in kinds
    assert "repair" not in verdict.phases_s


@pytest.mark.timeout(300)
def test_a_correct_kernel_has_no_finding_and_costs_no_search() -> None:
    folder, bug = planted("bugs_second", "scan_last_step_missing")
    right = CorpusKernel(task=bug.task, file=bug.file)
    verdict = judged(right, folder, LONG_ENOUGH_S)
    assert verdict.status is Status.correct
    assert verdict.forensics is None
    assert "repair" not in verdict.phases_s


def set_check(number: int, ok: bool) -> InputSetCheck:
    return InputSetCheck(
        distribution="normal",
        seed=number,
        ok=ok,
        max_abs=1.0,
        rel_rmse=1.0,
        failing_share=0.5,
        worst_index=(0,),
        worst_output="out",
        limit_abs=0.1,
        limit_rel_rmse=0.1,
        trusted_max_abs=0.0,
        trusted_rel_rmse=0.0,
    )


def verdict_with(hidden: bool = False, status: Status = Status.wrong_result) -> Verdict:
    right = CaseCheck(case="small", hidden=False, ok=True, sets=(set_check(0, True),))
    wrong = CaseCheck(
        case="large", hidden=hidden, ok=False, sets=(set_check(0, True), set_check(2, False))
    )
    return Verdict(status=status, reason="wrong", checks=(right, wrong))


def test_changes_are_tried_on_the_inputs_that_were_wrong() -> None:
    found = wrong_inputs(verdict_with())
    assert found is not None
    assert (found.case, found.number) == ("large", 2)


def with_fault(verdict: Verdict, case: str = "small") -> Verdict:
    told = Diagnosis(kind=DiagnosisKind.fault, sentence="race: no barrier", share=0.0)
    return verdict.model_copy(update={"forensics": Forensics(case=case, diagnoses=(told,))})


@pytest.mark.parametrize("status", [Status.fault, Status.crash, Status.timeout])
def test_after_a_fault_changes_are_followed_on_its_case(status: Status) -> None:
    """Also after what a GPU says of it, which ends the process there."""
    found = wrong_inputs(with_fault(verdict_with(status=status)))
    assert found == WrongInputs("small", 0, is_fault=True, has_outputs=False)
    hidden = with_fault(verdict_with(status=status), case=HIDDEN_CASE)
    assert wrong_inputs(hidden) is None


def test_what_a_fault_makes_wrong_is_followed_on_the_inputs_that_were_wrong() -> None:
    found = wrong_inputs(with_fault(verdict_with()))
    assert found == WrongInputs("large", 2, is_fault=True)


def test_nothing_is_looked_for_in_a_hidden_case_or_behind_another_status() -> None:
    assert wrong_inputs(verdict_with(hidden=True)) is None
    for status in (Status.fault, Status.timeout, Status.correct):
        assert wrong_inputs(verdict_with(status=status)) is None
    assert wrong_inputs(Verdict(status=Status.wrong_result, reason="no checks")) is None


def test_a_gpu_alone_tries_no_changes_after_a_fault() -> None:
    """It does not show the fault: every change would be right."""
    compiler, device = SimpleNamespace(clang=None), object()
    search = RepairSearch(Workbench(compiler, device), limits_of_arch("sm_90"))  # type: ignore[arg-type]  # neither is used
    _, bug = planted(*FAULT)
    candidate = bug.candidate(ROOT / "tests" / FAULT[0])
    found = kept().run(
        search.find(
            candidate,
            WrongInputs("large", 0, is_fault=True, has_outputs=False),
            1.0,
            lambda _: None,
        )
    )
    assert (found.changes, found.launched) == ([], 0)


class BrokenSearch:
    """A search whose device dies."""

    async def find(
        self,
        candidate: Candidate,
        wrong: object,
        seconds: float,
        progress: Progress,
        told: Sequence[str],
    ) -> object:
        raise WorkerError("the worker is gone")


def test_a_search_that_fails_leaves_the_verdict_as_it_is() -> None:
    said: list[str] = []
    before = verdict_with()
    _, bug = planted("bugs_second", "scan_last_step_missing")
    work = with_repair(
        before,
        bug.candidate(ROOT / "tests" / "bugs_second"),
        BrokenSearch(),  # type: ignore[arg-type]
        1.0,
        said.append,
    )
    assert kept().run(work) == before
    assert said == ["note: the search for a change was given up: the worker is gone"]


class FoundOne:
    """A search that found one change."""

    def __init__(self, change: SourceChange) -> None:
        self._change = change

    async def find(
        self,
        candidate: Candidate,
        wrong: object,
        seconds: float,
        progress: Progress,
        told: Sequence[str],
    ) -> FoundRepairs:
        return FoundRepairs(changes=[self._change])


@pytest.mark.parametrize(("kind", "place"), [("number of the plan", 1), ("sign", 0)])
def test_a_change_that_may_only_hide_the_mistake_stands_behind_what_the_outputs_show(
    kind: str, place: int
) -> None:
    _, bug = planted("bugs_second", "scan_last_step_missing")
    candidate = bug.candidate(ROOT / "tests" / "bugs_second")
    shown = [
        Diagnosis(kind=DiagnosisKind.region, sentence=text, share=0.5)
        for text in ("x is read from the wrong row.", "out is wrong at the last row.")
    ]
    before = verdict_with().model_copy(
        update={"forensics": Forensics(case="large", number=2, diagnoses=tuple(shown))}
    )
    start = candidate.source.index("grid:") + len("grid: ")
    change = SourceChange(start, start + 1, " [", kind)
    found = kept().run(
        with_repair(before, candidate, FoundOne(change), 1.0, lambda _: None)  # type: ignore[arg-type]
    )
    assert found.forensics is not None
    kinds = [item.kind for item in found.forensics.diagnoses]
    assert len(kinds) == 3 and kinds.index(DiagnosisKind.changed_source) == place


def test_changes_that_do_much_more_or_have_another_as_a_part_stand_behind() -> None:
    small, busy = SourceChange(3, 4, "K", "name"), SourceChange(7, 8, "N", "limit")
    whole = SourceChange(3, 4, "K", "names", others=(SourceChange(9, 10, "K", "names"),))
    assert small.is_part_of(whole) and not whole.is_part_of(small) and not busy.is_part_of(whole)
    found = FoundRepairs([busy, whole, small], work={busy: 1.4, whole: 1.0, small: 1.0})
    telling, hiding = found.likeliest_first(lambda _: False)
    assert telling == [small, busy, whole] and not hiding
    found = FoundRepairs([busy, small], by_chance=[small], work={busy: 1.4, small: 1.0})
    assert found.likeliest_first(lambda _: False) == ([busy], [small])
    assert found.likeliest_first(lambda item: item == busy) == ([], [small, busy])
