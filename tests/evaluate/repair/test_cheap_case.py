"""Changes are launched on a small case that may be shown, where the kernel is wrong there, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from benchmarks.planted_bugs import bug_task
from evoengine.evaluate.repair.cheap_case import first_wrong, smaller_cases
from evoengine.protocols import CompiledCase
from evoengine.records import CaseCheck, CheckedRun
from tests.evaluate.repair.test_repair_search import set_check


def case(name: str) -> CompiledCase:
    return cast(CompiledCase, SimpleNamespace(plan=SimpleNamespace(case=name)))


def check(ok: bool, sets: tuple[Any, ...]) -> CaseCheck:
    return CaseCheck(case="", hidden=False, ok=ok, sets=sets)


def test_smaller_cases_are_shown_ones_the_smallest_first() -> None:
    task = bug_task("sdpa_h200")
    found = smaller_cases(task, "full")
    assert found[0] == "wide_head with S=49"
    assert "full" not in found
    assert not any(name in task.hidden_cases for name in found)
    assert smaller_cases(task, found[0]) == []


def test_the_first_case_with_a_wrong_output_is_taken() -> None:
    cases = [case("a"), case("b"), case("c")]
    wrong = set_check(0, False)
    checks = [check(True, (set_check(0, True),)), check(False, ()), check(False, (wrong,))]
    assert first_wrong(cases, checks) == "c"
    assert first_wrong(cases, checks[:2]) is None


def test_a_case_with_a_finding_of_checked_mode_is_wrong() -> None:
    run = CheckedRun(checks=("races",), blocks=1, total_blocks=1, findings=("race: no barrier",))
    clean, faulty = (
        check(False, ()).model_copy(update={"checked": one})
        for one in (run.model_copy(update={"findings": ()}), run)
    )
    assert first_wrong([case("a"), case("b")], [clean, faulty]) == "b"
