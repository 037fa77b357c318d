"""References that hold infinities: what passes, what counts, and what a task may return."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker import output_errors
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.gate import Gate, errors_of
from evoengine.evaluate.worker.returned_values import refuse_values
from evoengine.evaluate.worker.task_functions import TaskFunctions
from tests.evaluate.worker.infinite_references import FLOATS, infinite_cases
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

WIDE = Gate(1e300, 1e300, 1e300, 1e300)


@pytest.mark.parametrize("gate", [Gate(0.0, 0.0, 1e-9, 4e-9), Gate(1e-3, 0.5, 1e-3, 4e-3), WIDE])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("piece", [16, output_errors.PIECE])
def test_an_infinity_passes_only_where_the_reference_is_the_same_one(
    monkeypatch: pytest.MonkeyPatch, dtype: str, gate: Gate, piece: int
) -> None:
    monkeypatch.setattr(output_errors, "PIECE", piece)
    for case in infinite_cases(dtype, CPU):
        found = errors_of(case.output, case.reference, gate)
        assert (found.failing, found.nan_count) == (case.failing, case.nan_count), case.shown
        assert gate.passes(found) is (case.failing == 0), case.shown
        assert gate.share(found) == (math.inf if case.failing else 0), case.shown
        assert found.max_abs == found.needed_atol == (math.inf if case.failing else 0), case.shown
        assert found.rel_rmse == (math.inf if case.rms else 0), case.shown


def test_an_infinite_element_counts_in_no_rmse_and_no_slice() -> None:
    finite = torch.linspace(1, 2, 120, dtype=torch.float64).view(3, 40)
    finite[1] = 0
    wrong = finite + 1e-3
    gate = Gate(1.0, 0.0, 1.0, 1e9)
    reference, out = finite.clone(), wrong.clone()
    reference[:, ::2] = out[:, ::2] = -math.inf
    found, alone = errors_of(out, reference, gate), errors_of(wrong[:, 1::2], finite[:, 1::2], gate)
    assert found.rel_rmse == pytest.approx(alone.rel_rmse)
    assert (found.slice_rel_rmse, found.worst_slice) == (math.inf, (1,)), "of zeros and infinities"
    reference[1] = out[1] = math.inf  # a slice of nothing else
    found = errors_of(out, reference, gate)
    rows = [
        (wrong[row, 1::2] - finite[row, 1::2]).norm() / finite[row, 1::2].norm() for row in (0,)
    ]
    assert (found.slice_rel_rmse, found.worst_slice) == (pytest.approx(float(rows[0])), (0,))


def test_zeros_beside_infinities_are_judged_by_their_own_number() -> None:
    reference = torch.full((1000,), math.inf, dtype=torch.float64)
    out = reference.float()
    reference[7], out[7] = 0.0, 0.5
    assert errors_of(out, reference, Gate(1.0, 0.0, 1.0, 1.0)).rel_rmse == pytest.approx(0.5)


LOGS = """\
import torch

def forward(x):
    return torch.log(x.clamp(min=0))

def trusted(x):
    return torch.log(x.clamp(min=0)) + 1e-5

def overflows(x):
    return torch.full_like(x, float("-inf"))
"""


def log_outputs(folder: Path, trusted: str) -> ExpectedOutputs:
    (folder / "scale_rows.py").write_text(LOGS)
    tier = {"atol": 1e-6, "rel_rmse": 1e-6, "trusted": f"scale_rows.py:{trusted}"}
    task = small_task(tiers={"fp32": tier})
    return ExpectedOutputs(task, TaskFunctions(task, folder / "t.yaml"), CPU)


def test_a_reference_with_infinities_has_expected_outputs_and_gates(tmp_path: Path) -> None:
    expected = log_outputs(tmp_path, "trusted").get("plain", "normal", 0)
    reference = expected.reference["out"]
    assert bool(reference.isinf().any()) and bool(reference.isfinite().any())
    assert expected.trusted["fp32"]["out"].failing == int(reference.isfinite().sum())
    assert expected.gates["fp32"]["out"].atol == pytest.approx(2e-5, rel=0.1)
    out = {"out": reference.float()}
    assert compare_outputs(out, expected, "fp32", "normal", 0).ok
    out["out"].nan_to_num_(neginf=-3e38)
    check = compare_outputs(out, expected, "fp32", "normal", 0)
    assert (check.ok, check.max_abs, check.nan_count) == (False, math.inf, 0)


def test_a_trusted_implementation_that_is_infinite_elsewhere_widens_nothing(tmp_path: Path) -> None:
    expected = log_outputs(tmp_path, "overflows").get("plain", "normal", 0)
    assert expected.gates["fp32"]["out"] == Gate(1e-6, 0.0, 1e-6, 4e-6)


@pytest.mark.parametrize(
    ("value", "dtype", "said"),
    [
        (math.nan, "float32", "f: out holds NaN for here: no output would equal it"),
        (math.nan, "int32", "f: out holds NaN for here"),
        (math.inf, "int32", "f: out holds an infinity for here, which int32 has not"),
        (-math.inf, "bool", "f: out holds an infinity for here, which bool has not"),
        (1e6, "float16", "f: out reaches 1e.06 for here, float16 ends at 65504"),
        (-1e39, "float32", "f: out reaches -1e.39 for here, float32 ends at 3.40282e.38"),
    ],
)
@pytest.mark.parametrize("beside", [[0.0], [math.inf, -math.inf], []])
def test_a_reference_may_hold_infinities_and_nothing_else_that_no_output_can_be(
    value: float, dtype: str, said: str, beside: list[float]
) -> None:
    if not dtype.startswith("float"):
        beside = []
    reference = torch.tensor([*beside, value], dtype=torch.float64)
    with pytest.raises(TaskError, match=said):
        refuse_values("f: out", reference, dtype, "here")


def test_infinities_of_either_sign_are_values_of_a_floating_output() -> None:
    for dtype in FLOATS:
        for values in ([math.inf], [-math.inf], [math.inf, -math.inf, 1.0], [-math.inf, 65504.0]):
            reference = torch.tensor(values, dtype=torch.float64)
            refuse_values("f: out", reference, dtype, "here")
        refuse_values("f: out", torch.tensor(-math.inf, dtype=torch.float64), dtype, "here")
