"""Real kernels on the emulator: buffers that begin with something, and inputs changed in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.records import Status, Verdict
from tests.evaluate.worker.emulated.judging import judged_on

TASK = """
name: beginnings
reference: functions.py:forward
dims: {N: int}
inputs: INPUTS
outputs: OUTPUTS
cases: {plain: {N: 3000}}
hidden_cases: {one: {N: 1}}
tiers: {fp32: {atol: 1e-3, rel_rmse: 1e-4}}
objective: {cases: [plain]}
baselines: {torch: functions.py:forward}
limits: {emulator_launch_s: 60, emulator_evaluate_s: 100}
budget: {trials: 1}
"""
KERNEL = """/* evoengine
name: k
precision: fp32
SCRATCH
launches:
  - {kernel: k, grid: ["ceil_div(N, 256)"], block: [256], args: [ARGS, N]}
*/
extern "C" __global__ void k(PARAMETERS, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    BODY
}
"""
X = "{x: {shape: [N], dtype: float32}}"
XY = "{x: {shape: [N], dtype: float32}, y: {shape: [N], dtype: float32}}"


def verdicts(folder: Path, inputs: str, outputs: str, body: str, *sources: str) -> list[Verdict]:
    functions = f"import torch\n\n\ndef forward({', '.join(names(inputs))}):\n    {body}\n"
    (folder / "functions.py").write_text(functions)
    path = folder / "beginnings.yaml"
    path.write_text(TASK.replace("INPUTS", inputs).replace("OUTPUTS", outputs))
    return judged_on(path, *sources)


def names(inputs: str) -> list[str]:
    return [name for name in ("x", "y") if f"{name}: {{" in inputs]


def kernel(args: str, parameters: str, body: str, scratch: str = "") -> str:
    text = KERNEL.replace("ARGS", args).replace("PARAMETERS", parameters)
    return text.replace("BODY", body).replace("SCRATCH", scratch)


def statuses(found: list[Verdict]) -> list[Status]:
    return [verdict.status for verdict in found]


SUM = "if (i < n) atomicAdd(out, x[i] / 64);"
SUM_OF = ("x, out", "const float* x, float* out")
# a sum of values of both signs may cancel, and its relative error is then as large as one likes
POSITIVE = "{x: {shape: [N], dtype: float32, draw: {positive: true}}}"


@pytest.mark.parametrize(("init", "status"), [(", init: 0", Status.correct), ("", None)])
def test_an_output_that_begins_with_zero_can_be_added_to(
    tmp_path: Path, init: str, status: Status | None
) -> None:
    outputs = f"{{out: {{shape: [1], dtype: float32{init}}}}}"
    (found,) = verdicts(
        tmp_path, POSITIVE, outputs, "return (x / 64).sum().reshape(1)", kernel(*SUM_OF, SUM)
    )
    assert found.status is status if status else found.status is not Status.correct, found


def test_an_output_may_begin_with_minus_infinity(tmp_path: Path) -> None:
    outputs = "{out: {shape: [N], dtype: float32, init: -inf}}"
    body = "return torch.where(x > 0, x, torch.full_like(x, -torch.inf))"
    keeps = "if (i < n && x[i] > 0) out[i] = x[i];"
    zero = "if (i < n) out[i] = x[i] > 0 ? x[i] : 0;"
    found = verdicts(tmp_path, X, outputs, body, kernel(*SUM_OF, keeps), kernel(*SUM_OF, zero))
    assert statuses(found) == [Status.correct, Status.wrong_result], found


def test_an_output_may_begin_with_a_copy_of_an_input(tmp_path: Path) -> None:
    outputs = "{out: {shape: [N], dtype: float32, init: y}}"
    args = "x, out", "const float* x, float* out"
    adds, nothing = "if (i < n) out[i] += x[i];", "if (n < 0) out[i] = x[i];"
    found = verdicts(
        tmp_path, XY, outputs, "return x + y", kernel(*args, adds), kernel(*args, nothing)
    )
    assert statuses(found) == [Status.correct, Status.wrong_result], found
    modelled = found[0].modelled[0]
    assert [launch.kernel for launch in modelled.launches] == ["fill out", "k"]
    assert modelled.launches[0].us > 0.5, "filling it is part of the time"


def test_scratch_may_begin_with_a_number_in_every_call(tmp_path: Path) -> None:
    outputs = "{out: {shape: [1], dtype: float32}}"
    args = "x, out, sum, seen", "const float* x, float* out, double* sum, int* seen"
    body = (
        "if (i < n) atomicAdd(sum, (double)x[i] / 64);\n"
        "__threadfence(); __syncthreads();\n"
        "if (threadIdx.x == 0 && atomicAdd(seen, 1) == (int)gridDim.x - 6)\n"
        "    *out = (float)(atomicAdd(sum, 0.0) - 1);"
    )
    scratch = (
        "scratch: {sum: {dtype: float64, shape: [1], init: 1},"
        " seen: {dtype: int32, shape: [1], init: -5}}"
    )
    without = scratch.replace(", init: -5", "")
    found = verdicts(
        tmp_path,
        X,
        outputs,
        "return (x / 64).sum().reshape(1)",
        kernel(*args, body, scratch),
        kernel(*args, body, without),
    )
    assert found[0].status is Status.correct, found[0]
    assert found[1].status is not Status.correct


IN_PLACE = "{x: {shape: [N], dtype: float32, inout: true}}"
STEP = "x, y", "float* x, float* y"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("if (i < n) x[i] -= y[i] / 2;", Status.correct),
        ("if (i < n && i != 7) x[i] -= y[i] / 2;", Status.wrong_result),
        ("if (i < n) { x[i] -= y[i] / 2; y[i] = 0; }", Status.cheat),
        ("if (i <= n) x[i] -= y[i == n ? 0 : i] / 2;", Status.fault),
    ],
    ids=["right", "one left out", "another input changed", "beyond"],
)
def test_an_input_may_be_changed_in_place(tmp_path: Path, body: str, status: Status) -> None:
    (found,) = verdicts(tmp_path, XY, IN_PLACE, "return x - y / 2", kernel(*STEP, body))
    assert found.status is status, found


def test_a_reference_may_change_its_own_copy_in_place(tmp_path: Path) -> None:
    right = kernel(*STEP, "if (i < n) x[i] -= y[i] / 2;")
    (found,) = verdicts(tmp_path, XY, IN_PLACE, "return x.sub_(y / 2)", right)
    assert found.status is Status.correct, found
