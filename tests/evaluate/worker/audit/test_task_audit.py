"""A task is audited: what is plainly wrong must be refused on each case that is scored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from evoengine.evaluate.worker.audit.task_audit import TaskAudit
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.paths import find_task, starter_dir
from evoengine.records import AuditReport, AuditRow
from evoengine.task.load import load_task
from evoengine.task.schema import Task

# torch.compile's back end warns about torch's own use of torch.jit when it is imported
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

TASK = """\
name: audited
reference: audited.py:forward
dims: {N: int, C: int, causal: bool}
inputs:
  x: {shape: [N, C], dtype: float32DRAW}
  y: {shape: [N, C], dtype: float32DRAW}
outputs:
OUTPUTS
cases:
  scored: {N: 512, C: 64, causal: true}
hidden_cases:
  odd: {N: 7, C: 33, causal: false}
tiers: {fp32: {atol: ATOL, rtol: RTOL, rel_rmse: RMSE}}
objective: {cases: [scored]}
baselines: {torch: audited.py:forward}
budget: {trials: 5}
"""
ONE = "  out: {shape: [N, C], dtype: float32}"


def audited(
    folder: Path,
    body: str,
    outputs: str = ONE,
    atol: str = "1e-5",
    rtol: str = "1e-5",
    rel_rmse: str = "1e-5",
    draw: str = "",
) -> AuditReport:
    (folder / "audited.py").write_text(f"import torch\n\n\ndef forward(x, y, causal):\n{body}\n")
    text = TASK
    values = {"OUTPUTS": outputs, "ATOL": atol, "RTOL": rtol, "RMSE": rel_rmse, "DRAW": draw}
    for name, value in values.items():
        text = text.replace(name, value)
    path = folder / "audited.yaml"
    path.write_text(text)
    return report_on(load_task(path), path)


def report_on(task: Task, path: Path) -> AuditReport:
    functions = TaskFunctions(task, path)
    expected = ExpectedOutputs(task, functions, torch.device("cpu"))
    report = TaskAudit(task, functions, expected, lambda _: None).report()
    assert report.audit is not None
    return report.audit


def passing(report: AuditReport) -> set[tuple[str, str, str]]:
    return {(row.stand_in, row.output, row.bound) for row in report.rows if not row.refused}


def test_a_sound_task_lets_nothing_through_and_every_stand_in_was_tried(tmp_path: Path) -> None:
    report = audited(tmp_path, "    return x * y.sigmoid() + (x.flip(1) if causal else 0)")
    assert report.findings == ()
    assert {row.stand_in for row in report.rows} == {
        "zeros",
        *(f"zeros on {name}" for name in ("normal", "outliers", "wide", "extreme")),
        "ones",
        "the mean everywhere",
        "the output of another seed",
        "a copy of x",
        "a copy of y",
        "the output for x of another seed",
        "the output for y of another seed",
        "the mean along axis 0",
        "the mean along axis 1",
        "transposed",
        "one row missing",
        "one element off by 10 gates",
        "causal left out",
        "inputs in fp16 precision",
    }
    assert {row.case for row in report.rows} == {"scored"}


def test_an_attention_on_uniform_inputs_within_a_hundredth_is_no_more_than_a_mean(
    tmp_path: Path,
) -> None:
    body = "    return torch.softmax(x @ y.T / x.shape[1] ** 0.5, -1) @ y"
    uniform = ", draw: {dist: uniform, low: 0, high: 1}"
    report = audited(tmp_path, body, atol="1e-2", rtol="0", rel_rmse="1e-2", draw=uniform)
    found = passing(report)
    assert ("the mean along axis 0", "out", "any bound") in found
    assert any("case scored" in line and "axis 0" in line for line in report.findings)


def test_a_second_output_far_below_the_tolerance_is_found(tmp_path: Path) -> None:
    outputs = f"{ONE}\n  tiny: {{shape: [N, C], dtype: float32}}"
    body = "    return 1000 * (x + y), 1e-6 * (x - y)"
    report = audited(tmp_path, body, outputs, atol="1e-3", rel_rmse="1e-3")
    assert {row.output for row in report.rows if not row.refused} == {"tiny"}
    assert ("zeros", "tiny", "each element") in passing(report)
    assert ("zeros", "out", "each element") not in passing(report)


def test_a_tensor_without_dimensions_and_infinities_are_audited(tmp_path: Path) -> None:
    outputs = f"{ONE}\n  loss: {{shape: [], dtype: float32}}"
    body = (
        "    far = x.masked_fill(x > 1, float('-inf')) * (2 if causal else 1)\n"
        "    return far + y.clamp(-1, 1), (x * y).sum()"
    )
    report = audited(tmp_path, body, outputs, rel_rmse="1e-4")
    assert report.findings == ()
    assert ("zeros", "loss") in {(row.stand_in, row.output) for row in report.rows}
    assert ("transposed", "loss") not in {(row.stand_in, row.output) for row in report.rows}


def test_an_output_without_a_finite_value_is_found_and_says_nothing_of_the_whole(
    tmp_path: Path,
) -> None:
    """Infinities are left as they are: where there is nothing else, nothing is refused."""
    body = "    return torch.full_like(x, float('-inf')) if causal else x * y"
    report = audited(tmp_path, body)
    zeros = {row.bound: row for row in report.rows if row.stand_in == "zeros"}
    assert zeros.keys() == {"each element"} and not zeros["each element"].refused
    assert any("lets zeros through as out" in finding for finding in report.findings)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
def test_one_element_is_off_by_what_the_type_can_tell_where_nothing_is_tolerated(
    tmp_path: Path, dtype: str
) -> None:
    body = "    return ((x > 0) ^ (y > 0.5) ^ (causal and x > 1)).double()"
    report = audited(tmp_path, body, ONE.replace("float32", dtype), "0", "0", "1e-9")
    rows = [row for row in report.rows if row.stand_in == "one element off by 10 gates"]
    assert rows and all(row.refused for row in rows)


def test_a_loss_that_half_of_the_values_give_is_found(tmp_path: Path) -> None:
    """A mean over many values is nearly the same over half of them."""
    loss = "  loss: {shape: [], dtype: float32}"
    body = "    return (x * x + y * y).mean()"
    found = passing(audited(tmp_path, body, loss, atol="0", rtol="3e-2", rel_rmse="3e-2"))
    halves = {(f"half of {name} along axis 1", "loss", "any bound") for name in "xy"}
    assert halves <= found
    exact = audited(tmp_path, body, loss, atol="0", rtol="1e-6", rel_rmse="1e-6")
    assert exact.findings == ()


def test_a_gate_that_a_trusted_implementation_opens_on_one_distribution_is_found(
    tmp_path: Path,
) -> None:
    """A kernel that looks at its inputs could leave such sets out."""
    body = (
        "    return x.clamp(-60, 60) * y.sigmoid()\n\n\n"
        "def loose(x, y, causal):\n"
        "    return forward(x, y, causal) * (x.abs().max() < 100)"
    )
    (tmp_path / "audited.py").write_text(f"import torch\n\n\ndef forward(x, y, causal):\n{body}\n")
    text = TASK.replace("OUTPUTS", ONE).replace("DRAW", "")
    for name in ("ATOL", "RTOL", "RMSE"):
        text = text.replace(name, "1e-5")
    path = tmp_path / "audited.yaml"
    path.write_text(text.replace("rel_rmse: 1e-5", "rel_rmse: 1e-5, trusted: audited.py:loose"))
    report = report_on(load_task(path), path)
    assert passing(report) == {("zeros on extreme", "out", "any bound")}
    (finding,) = report.findings
    assert "lets zeros on extreme through" in finding


IN_PLACE = """\
  x: {shape: [N, C], dtype: float32, inout: true}
  y: {shape: [N, C], dtype: float32, inout: true}"""


def test_a_change_in_place_below_the_tolerance_is_found(tmp_path: Path) -> None:
    """What is left unchanged is refused; most of the change is not."""
    body = "    return x * (1 + 1e-3 * y.sigmoid()), y * 2"
    loose = audited(tmp_path, body, IN_PLACE, atol="0.1", rtol="0", rel_rmse="5e-4")
    assert ("0.9 of the change in place", "x", "any bound") in passing(loose)
    assert ("0.9 of the change in place", "y", "any bound") not in passing(loose)
    assert ("a copy of x", "x", "the whole output") not in passing(loose)
    exact = audited(tmp_path, body, IN_PLACE, atol="1e-6", rtol="1e-6", rel_rmse="1e-6")
    assert exact.findings == ()


def test_what_an_output_begins_with_must_not_be_right(tmp_path: Path) -> None:
    outputs = "  out: {shape: [N, C], dtype: float32, init: 7}"
    body = "    return 7 + 1e-3 * (x * y).tanh()"
    found = passing(audited(tmp_path, body, outputs, atol="1e-1", rel_rmse="1e-2"))
    assert {
        ("left as it begins", "out", bound) for bound in ("each element", "the whole output")
    } <= (found)
    assert audited(tmp_path, "    return 7 + x * y", outputs).findings == ()


def test_infinities_do_not_hide_bounds_that_let_everything_else_through(tmp_path: Path) -> None:
    body = (
        "    hidden = torch.ones_like(x).triu(1) > 0\n"
        "    return (x.sigmoid() * y.sigmoid()).masked_fill(hidden, float('-inf'))"
    )
    found = passing(audited(tmp_path, body, atol="2", rtol="0", rel_rmse="2"))
    assert {("zeros", "out", bound) for bound in ("each element", "the whole output")} <= found
    assert audited(tmp_path, body).findings == ()


def test_an_input_without_influence_is_found(tmp_path: Path) -> None:
    found = passing(audited(tmp_path, "    return x.exp() + 0 * y"))
    assert found == {("the output for y of another seed", "out", "any bound")}


def test_an_input_may_change_one_output_alone(tmp_path: Path) -> None:
    outputs = f"{ONE}\n  other: {{shape: [N, C], dtype: float32}}"
    assert audited(tmp_path, "    return x.exp(), y.exp()", outputs).findings == ()


def test_an_output_that_is_one_constant_is_found(tmp_path: Path) -> None:
    found = passing(audited(tmp_path, "    return torch.zeros_like(x) * y"))
    assert {("zeros", "out", "each element"), ("zeros", "out", "the whole output")} <= found


def test_a_reference_that_copies_or_is_symmetric_is_no_finding(tmp_path: Path) -> None:
    square = "  out: {shape: [N, N], dtype: float32}"
    body = "    return x @ y.T + y @ x.T"
    assert audited(tmp_path, body, square, atol="1e-3", rel_rmse="1e-4").findings == ()


def test_a_tolerance_beyond_the_precision_below_is_found(tmp_path: Path) -> None:
    report = audited(tmp_path, "    return x * y", atol="1e-2", rtol="1e-2", rel_rmse="1e-2")
    assert passing(report) == {("inputs in fp16 precision", "out", "any bound")}


def test_what_applies_to_no_scored_case_must_be_refused_by_another(tmp_path: Path) -> None:
    body = "    return x * y.sigmoid()"  # the flag changes nothing
    report = audited(tmp_path, body)
    assert ("causal left out", "out", "any bound") not in {
        (row.stand_in, row.output, row.bound) for row in report.rows
    }, "exactly right is no fault of a flag"


@pytest.mark.parametrize("name", ["starter", "sdpa_l4", "sdpa_h200"])
def test_packaged_tasks_let_nothing_through(name: str) -> None:
    path = starter_dir() / "starter.yaml" if name == "starter" else find_task(name)
    report = report_on(load_task(path), path)
    assert report.findings == ()
    assert len(report.rows) > 30


def test_a_finding_names_tier_case_distribution_and_bound() -> None:
    row = AuditRow(
        tier="fp16",
        output="out",
        stand_in="zeros",
        bound="each element",
        refused=False,
        case="mission",
        distribution="normal",
        error=0.004,
        limit=0.01,
    )
    assert row.finding == (
        "tier fp16, case mission: the bound of each element lets zeros through as out; closest to"
        " refusal is normal, error 0.004, allowed 0.01"
    )


def test_without_input_tensors_all_seeds_have_the_same_output(tmp_path: Path) -> None:
    text = re.sub(
        r"(?s)inputs:\n.*?(?=\noutputs:)", "inputs:\n  s: {value: 2, dtype: float32}", TASK
    )
    text = text.replace("OUTPUTS", ONE).replace("DRAW", "")
    for name in ("ATOL", "RTOL", "RMSE"):
        text = text.replace(name, "1e-5")
    body = "def forward(s, N, C, causal):\n    return torch.arange(1.0, N * C + 1, dtype=torch.float64).view(N, C) * s\n"
    (tmp_path / "audited.py").write_text(f"import torch\n\n\n{body}")
    path = tmp_path / "audited.yaml"
    path.write_text(text)
    report = report_on(load_task(path), path)
    assert not any("another seed" in row.stand_in for row in report.rows)
