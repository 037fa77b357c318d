"""What tuning learned of a parent, in its prompt: at most ten lines, failures with their reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Evaluated, Request
from evoengine.records import Interval, Outcome, Status
from tests.generate.row_sums_task import HIDDEN_NAMES, HIDDEN_SIZES, evaluated, kernel, request

VALUES = list(range(32, 32 * 21, 32))


def parent() -> Evaluated:
    """A kernel with twenty values of THREADS."""
    found = evaluated(1, name="wide")
    source = kernel("wide").replace("[128, 256]", str([128, *(v for v in VALUES if v != 128)]))
    return replace(found, source=source)


def tried(trial: int, us: float | None, reason: str = "", **tunables: int) -> Outcome:
    figure = None if us is None else Interval(value=us, low=us, high=us)
    return evaluated(trial, name="wide").outcome.model_copy(
        update={
            "tunables": tunables,
            "status": Status.correct if us else Status.wrong_result,
            "reason": reason,
            "score": figure,
            "latency_us": figure,
        }
    )


def asked(task_path: Path, outcomes: Iterable[Outcome]) -> Request:
    """A request that knows these outcomes, of whatever source."""
    known = tuple(outcomes)
    return replace(
        request(task_path, elites=(parent(),)), tuning_trials=9, tried=lambda digest: known
    )


def section(task_path: Path, outcomes: Iterable[Outcome]) -> list[str]:
    """The lines on tuning in the prompt about the parent."""
    choice = OperatorChoice("mutate", "fp32", (parent(),))
    text = Prompts(task_path).render(choice, asked(task_path, outcomes)).text
    lines = text.partition("# Tried values of the parents' tunables")[2].splitlines()
    start = next((at for at, line in enumerate(lines) if " were tried, " in line), None)
    return [] if start is None else lines[start : lines.index("", start)]


def test_it_says_the_best_the_worst_and_what_failed_and_why(task_path: Path) -> None:
    found = section(
        task_path,
        [
            tried(1, 6.5),
            tried(2, 5.25, THREADS=64),
            tried(3, None, "case main: 3 of 4 input sets fail", THREADS=32, ROWS=2),
        ],
    )
    name, trial = parent().outcome.label, parent().outcome.trial
    assert found == [
        f"3 configurations of {name} (trial {trial}) were tried, 2 of them correct (values not named were the same in"
        " all; slow ones were timed roughly):",
        "- THREADS=64, ROWS=1: 5.25 us, the best",
        "- THREADS=128, ROWS=1: 6.50 us",
        "- THREADS=32, ROWS=2: fails, wrong_result: case main: 3 of 4 input sets fail",
    ]


def test_a_kernel_that_a_model_sends_again_does_not_make_its_configuration_a_failure(
    task_path: Path,
) -> None:
    again = tried(3, None, "the same as trial 1").model_copy(update={"status": Status.rejected})
    found = section(task_path, [tried(1, 6.5), tried(2, 5.25, THREADS=64), again])
    assert "2 configurations of" in found[0] and "2 of them correct" in found[0]
    assert found[1:] == ["- THREADS=64: 5.25 us, the best", "- THREADS=128: 6.50 us"]


def test_it_has_at_most_ten_lines_and_names_failures_however_much_was_tried(
    task_path: Path,
) -> None:
    right = [tried(trial, 10.0 - trial / 10, THREADS=value) for trial, value in enumerate(VALUES)]
    wrong = [
        tried(100 + trial, None, f"case {trial} is wrong", THREADS=value, ROWS=2)
        for trial, value in enumerate(VALUES)
    ]
    found = section(task_path, right + wrong)
    assert len(found) == 10
    assert found[0].startswith("40 configurations of ") and ", 20 of them correct" in found[0]
    assert found[1] == f"- THREADS={VALUES[-1]}, ROWS=1: 8.10 us, the best"
    assert found[6] == f"- THREADS={VALUES[0]}, ROWS=1: 10.00 us, the slowest"
    assert [line.partition("fails, ")[2] for line in found[7:]] == [
        f"wrong_result: case {trial} is wrong" for trial in (19, 18, 17)
    ]


def test_failures_for_one_reason_take_one_line(task_path: Path) -> None:
    wrong = [tried(trial, None, "case main: NaN", THREADS=VALUES[trial]) for trial in range(9)]
    assert len([line for line in section(task_path, wrong) if "fails" in line]) == 1


@pytest.mark.parametrize("outcomes", [[], [tried(1, 6.5)], [tried(1, 6.5), tried(2, 6.5)]])
def test_it_is_left_out_where_no_second_configuration_was_tried(
    task_path: Path, outcomes: list[Outcome]
) -> None:
    assert section(task_path, outcomes) == []


def test_a_long_or_hidden_reason_is_not_repeated(task_path: Path) -> None:
    reason = f"case {HIDDEN_NAMES[0]}: {HIDDEN_SIZES[0]} of {HIDDEN_SIZES[1]} rows\n" + "x" * 900
    found = section(task_path, [tried(1, 6.5), tried(2, None, reason, THREADS=64)])
    assert len(found) == 3 and len(found[2]) < 200
    assert not [word for word in (*HIDDEN_NAMES, *HIDDEN_SIZES) if word in found[2]]


def test_the_format_says_how_many_trials_tune_and_that_a_failure_refuses_itself_only(
    task_path: Path,
) -> None:
    for operator in ("first", "mutate"):
        parents = (parent(),) if operator == "mutate" else ()
        choice = OperatorChoice(operator, "fp32", parents)
        text = " ".join(Prompts(task_path).render(choice, asked(task_path, ())).text.split())
        assert "In 9 of the trials of this run other values are tried, without asking you" in text
        assert "One combination is chosen for all cases at once" in text
        assert "one that fails refuses only itself, not the file" in text
