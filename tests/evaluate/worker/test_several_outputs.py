"""Outputs of different scales: each under a gate of its own, and the record of the worst one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.evaluate.worker.check import compare_outputs, explain, worst_of_each
from evoengine.evaluate.worker.expected_outputs import ExpectedOutput, ExpectedOutputs
from evoengine.evaluate.worker.gate import Errors, Gate, nearest_to_limit
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.records import CaseCheck, InputSetCheck
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

LOUD_AND_QUIET = """\
def forward(x):
    return 1000 * x, 1e-6 * x

def sloppy(x):
    return 1000 * x + 5, 1e-6 * x
"""
TENSOR = {"shape": ["N", "C"], "dtype": "float32"}


def expected_of(folder: Path, **tier: Any) -> ExpectedOutput:
    """The expected outputs of one set: `loud` is 1000 x, `quiet` 1e-6 x."""
    (folder / "scale_rows.py").write_text(LOUD_AND_QUIET)
    task = small_task(
        outputs={"loud": TENSOR, "quiet": TENSOR},
        tiers={"fp32": {"atol": 1e-3, "rel_rmse": 1e-6, **tier}},
    )
    functions = TaskFunctions(task, folder / "t.yaml")
    return ExpectedOutputs(task, functions, CPU).get("plain", "normal", 0)


def checked(expected: ExpectedOutput, **changes: float) -> InputSetCheck:
    """The check of the right outputs, some multiplied by a factor."""
    outputs = {
        name: value.float() * changes.get(name, 1.0) for name, value in expected.reference.items()
    }
    return compare_outputs(outputs, expected, "fp32", "normal", 0)


@pytest.mark.parametrize("trusted", [None, "scale_rows.py:sloppy"])
def test_a_quiet_output_that_is_left_at_zero_is_refused(
    tmp_path: Path, trusted: str | None
) -> None:
    expected = expected_of(tmp_path, trusted=trusted)
    assert checked(expected).ok
    left_out = checked(expected, quiet=0.0)
    assert (left_out.ok, left_out.worst_output, left_out.worst_slice_output) == (
        False,
        "quiet",
        "quiet",
    )
    assert left_out.rel_rmse == pytest.approx(1) and left_out.max_abs < 1e-5
    assert left_out.limit_rel_rmse == 1e-6, "of this output alone"
    case = CaseCheck(case="plain", hidden=False, ok=False, sets=(left_out,))
    assert "; normal set 0, output quiet: max abs error" in explain(case)


def test_a_trusted_error_in_one_output_widens_the_gate_of_that_one_alone(tmp_path: Path) -> None:
    expected = expected_of(tmp_path, trusted="scale_rows.py:sloppy", trusted_factor=3)
    loud, quiet = (expected.gates["fp32"][name] for name in ("loud", "quiet"))
    assert loud.atol == pytest.approx(15, rel=1e-3) and loud.rel_rmse > 1e-3
    assert quiet.atol == 1e-3 and quiet.rel_rmse == 1e-6
    assert expected.trusted["fp32"]["quiet"].max_abs < 1e-9
    assert checked(expected, loud=1.002).ok
    assert not checked(expected, quiet=1.002).ok


def test_an_output_is_held_to_its_own_tolerances(tmp_path: Path) -> None:
    own = {"quiet": {"atol": 1e-12, "rel_rmse": 0.5}}
    expected = expected_of(tmp_path, outputs=own)
    gates = expected.gates["fp32"]
    assert gates["loud"] == Gate(1e-3, 0.0, 1e-6, 4e-6)
    assert gates["quiet"] == Gate(1e-12, 0.0, 0.5, 2.0)
    wrong = checked(expected, quiet=1.01)
    assert (wrong.ok, wrong.worst_output, wrong.limit_abs) == (False, "quiet", 1e-12)
    loose = expected_of(tmp_path, outputs={"quiet": {"atol": 1.0, "rel_rmse": 0.5}})
    assert checked(loose, quiet=1.1).ok
    assert not checked(loose, loud=1.1).ok


def test_the_output_that_fails_most_clearly_is_shown(tmp_path: Path) -> None:
    expected = expected_of(tmp_path)
    assert checked(expected, quiet=0.5).worst_output == "quiet"
    assert checked(expected, loud=1.001).worst_output == "loud"
    both = checked(expected, quiet=0.5, loud=2.0)
    assert both.worst_output == "loud", "its elements are a million times beyond atol"
    both = checked(expected, quiet=math.nan, loud=1.001)
    assert both.worst_output == "quiet" and both.nan_count == 64 * 96


def found(share: float, failing: int = 0, nan: int = 0) -> Errors:
    return Errors(share, 0.0, failing, 10, nan, share)


def test_where_all_pass_the_output_nearest_to_a_limit_is_shown() -> None:
    gates = {"a": Gate(1e3, 0.0, 1.0, 1.0), "b": Gate(1e-6, 0.0, 1.0, 1.0)}
    assert nearest_to_limit({"a": found(500), "b": found(1e-7)}, gates) == "a"
    assert nearest_to_limit({"a": found(500), "b": found(9e-7)}, gates) == "b"
    assert nearest_to_limit({"a": found(500), "b": found(2e-6, failing=1)}, gates) == "b"


def test_the_relative_tolerance_of_a_large_element_is_not_an_error() -> None:
    """An error of 5 where rtol allows 10 is nearer to no limit than one of half of atol."""
    gates = {"large": Gate(1e-6, 1e-2, 1.0, 4.0), "small": Gate(1e-6, 0.0, 1.0, 4.0)}
    errors = {
        "large": Errors(5.0, 1e-3, 0, 10, 0, 0.0),
        "small": Errors(5e-7, 1e-3, 0, 10, 0, 5e-7),
    }
    assert nearest_to_limit(errors, gates) == "small"


def test_the_worst_comparison_of_a_set_is_that_nearest_to_its_limits(tmp_path: Path) -> None:
    expected = expected_of(tmp_path)
    near = checked(expected, quiet=1 + 5e-7)
    far = checked(expected)
    assert near.ok and far.ok and far.max_abs > near.max_abs, "far shows the loud output"
    assert worst_of_each([near], [far]) == worst_of_each([far], [near]) == (near,)
    case = CaseCheck(case="plain", hidden=False, ok=True, sets=(far, near))
    assert case.worst is near


def test_a_record_of_an_earlier_version_is_read_and_ordered_by_its_largest_error() -> None:
    stored = {
        "distribution": "normal",
        "seed": 0,
        "ok": False,
        "max_abs": 1.0,
        "rel_rmse": 0.1,
        "failing_share": 0.5,
        "worst_index": [3],
        "worst_output": "out",
        "limit_abs": 1e-3,
        "limit_rel_rmse": 1e-3,
        "trusted_max_abs": 0.0,
        "trusted_rel_rmse": 0.0,
    }
    first = InputSetCheck.model_validate(stored)
    second = InputSetCheck.model_validate({**stored, "seed": 1, "max_abs": 2.0})
    case = CaseCheck(case="plain", hidden=False, ok=False, sets=(first, second))
    assert case.worst is second and first.share_of_limit is None
    assert first.worst_place == "out[3]"
    assert first.model_copy(update={"worst_index": ()}).worst_place == "out"
    again = checked_again(first)
    assert again == first


def checked_again(check: InputSetCheck) -> InputSetCheck:
    return InputSetCheck.model_validate_json(check.model_dump_json())


def test_a_check_with_an_infinite_share_is_stored_and_read(tmp_path: Path) -> None:
    wrong = checked(expected_of(tmp_path), loud=math.nan)
    assert wrong.share_of_limit == math.inf
    assert checked_again(wrong) == wrong


def test_outputs_of_one_element_and_no_dimensions_are_compared() -> None:
    gate = Gate(1e-6, 0.0, 1e-6, 4e-6)
    reference = torch.tensor(2.0, dtype=torch.float64)
    expected = ExpectedOutput({"loss": reference}, {}, {"fp32": {"loss": gate}})
    assert compare_outputs({"loss": torch.tensor(2.0)}, expected, "fp32", "normal", 0).ok
    wrong = compare_outputs({"loss": torch.tensor(3.0)}, expected, "fp32", "normal", 0)
    assert (wrong.ok, wrong.worst_index, wrong.worst_place) == (False, (), "loss")
    assert (wrong.rel_rmse, wrong.worst_slice_output) == (0.5, "")
    case = CaseCheck(case="c", hidden=False, ok=False, sets=(wrong,))
    assert "output loss: max abs error 1 (allowed 1e-06)" in explain(case)
