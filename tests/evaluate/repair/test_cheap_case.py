"""Changes are launched on a small case that may be shown, where the kernel is wrong there, too."""

from __future__ import annotations

from typing import Any

from benchmarks.planted_bugs import bug_task
from evoengine.evaluate.repair.cheap_case import is_wrong, smaller_cases
from evoengine.paths import find_task
from evoengine.records import CaseCheck, CheckedRun
from evoengine.task.load import load_task
from tests.evaluate.repair.test_repair_search import set_check


def check(ok: bool, sets: tuple[Any, ...]) -> CaseCheck:
    return CaseCheck(case="", hidden=False, ok=ok, sets=sets)


def test_smaller_cases_are_shown_ones_the_smallest_first() -> None:
    task = bug_task("sdpa_h200")
    found = smaller_cases(task, "full")
    assert found[0] == "wide_head with S=49"
    assert "full" not in found
    assert not any(name in task.hidden_cases for name in found)
    assert smaller_cases(task, found[0]) == []


def test_cases_of_the_same_sizes_are_looked_at_once() -> None:
    task = load_task(find_task("layernorm"))
    found = smaller_cases(task, "broad")
    sizes = [tuple(task.scope(name).values()) for name in found]
    assert len(set(sizes)) == len(sizes) == len(found) > 6


def test_a_case_with_a_wrong_output_is_wrong() -> None:
    wrong = set_check(0, False)
    assert not is_wrong(check(True, (set_check(0, True),)))
    assert not is_wrong(check(False, ())), "it could not be compared"
    assert is_wrong(check(False, (wrong,)))


def test_a_case_with_a_finding_of_checked_mode_is_wrong() -> None:
    run = CheckedRun(checks=("races",), blocks=1, total_blocks=1, findings=("race: no barrier",))
    clean, faulty = (
        check(False, ()).model_copy(update={"checked": one})
        for one in (run.model_copy(update={"findings": ()}), run)
    )
    assert is_wrong(faulty) and not is_wrong(clean)
