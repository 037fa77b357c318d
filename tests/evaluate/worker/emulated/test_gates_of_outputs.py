"""Real kernels on the emulator: outputs without dimensions, of different scales, and with
infinities.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.records import Status, Verdict
from tests.evaluate.worker.emulated.judging import judged_on

TASK = """
name: outputs
reference: functions.py:forward
dims: {N: int}
inputs: INPUTS
outputs: OUTPUTS
cases: {plain: {N: 5000}}
hidden_cases: {one: {N: 1}}
tiers: {fp32: {atol: 1e-5, rel_rmse: 1e-6, trusted: functions.py:trusted}}
objective: {cases: [plain]}
baselines: {torch: functions.py:trusted}
limits: {emulator_launch_s: 60, emulator_evaluate_s: 100}
budget: {trials: 1}
"""
KERNEL = """/* evoengine
name: k
precision: fp32
SCRATCH
launches:
  - {kernel: k, grid: [1], block: [256], args: [ARGS, N]}
*/
extern "C" __global__ void k(PARAMETERS, int n) {
    BODY
}
"""


def verdicts(
    folder: Path, inputs: str, outputs: str, functions: str, *sources: str
) -> list[Verdict]:
    (folder / "functions.py").write_text(functions)
    path = folder / "outputs.yaml"
    path.write_text(TASK.replace("INPUTS", inputs).replace("OUTPUTS", outputs))
    return judged_on(path, *sources)


def kernel(args: str, parameters: str, body: str, scratch: str = "") -> str:
    text = KERNEL.replace("ARGS", args).replace("PARAMETERS", parameters)
    return text.replace("BODY", body).replace("SCRATCH", scratch)


LOSS = """\
import torch.nn.functional as F

def forward(x, y, weight):
    return F.mse_loss(x, y) * weight

trusted = forward
"""
SUM = """
    __shared__ float parts[256];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += (x[i] - y[i]) * (x[i] - y[i]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
"""
LOSSES = {
    "mean": SUM + "if (threadIdx.x == 0) *loss = parts[0] / n * *weight;",
    "by scratch": SUM + "if (threadIdx.x == 0) { *room = parts[0] / n; *loss = *room * *weight; }",
    "sum": SUM + "if (threadIdx.x == 0) *loss = parts[0] * *weight;",
    "without weight": SUM + "if (threadIdx.x == 0) *loss = parts[0] / n;",
    "unwritten": "",
    "beyond": SUM + "if (threadIdx.x < 2) loss[threadIdx.x] = parts[0] / n * *weight;",
}


def loss_kernel(name: str) -> str:
    arguments, parameters = "x, y, weight, loss", "const float* x, const float* y"
    parameters += ", const float* weight, float* loss"
    if name != "by scratch":
        return kernel(arguments, parameters, LOSSES[name])
    scratch = "scratch: {room: {dtype: float32, shape: []}}"
    return kernel(f"{arguments}, room", f"{parameters}, float* room", LOSSES[name], scratch)


def test_a_loss_is_one_number_without_dimensions(tmp_path: Path) -> None:
    vector = "{shape: [N], dtype: float32}"
    found = verdicts(
        tmp_path,
        f"{{x: {vector}, y: {vector}, weight: {{shape: [], dtype: float32}}}}",
        "{loss: {shape: [], dtype: float32}}",
        LOSS,
        *map(loss_kernel, LOSSES),
    )
    statuses = {name: verdict.status for name, verdict in zip(LOSSES, found, strict=True)}
    assert statuses == {
        "mean": Status.correct,
        "by scratch": Status.correct,
        "sum": Status.wrong_result,
        "without weight": Status.wrong_result,
        "unwritten": Status.wrong_result,
        "beyond": Status.fault,
    }
    assert all(item.worst_place == "loss" for item in found[0].checks[0].sets)
    assert found[0].modelled
    assert "output loss: max abs error" in found[2].reason


LOUD_AND_QUIET = """\
def forward(x):
    return 1000 * x, 1e-6 * x

def trusted(x):
    return 1000 * x + 1, 1e-6 * x
"""


@pytest.mark.parametrize("quiet", ["1e-6f * x[i]", "0"])
def test_a_quiet_output_beside_a_loud_one_must_be_right(tmp_path: Path, quiet: str) -> None:
    vector = "{shape: [N], dtype: float32}"
    body = f"for (int i = threadIdx.x; i < n; i += 256) a[i] = 1000 * x[i], b[i] = {quiet};"
    (found,) = verdicts(
        tmp_path,
        f"{{x: {vector}}}",
        f"{{a: {vector}, b: {vector}}}",
        LOUD_AND_QUIET,
        kernel("x, a, b", "const float* x, float* a, float* b", body),
    )
    assert found.status is (Status.wrong_result if quiet == "0" else Status.correct), found.reason
    assert quiet != "0" or "output b: max abs error" in found.reason


LOGS = """\
import torch

def forward(x):
    return torch.log(x.clamp(min=0))

trusted = forward
"""


def test_a_reference_with_infinities_asks_for_the_same_ones(tmp_path: Path) -> None:
    bodies = {
        "log": "out[i] = logf(fmaxf(x[i], 0));",
        "finite": "out[i] = fmaxf(logf(fmaxf(x[i], 0)), -3e38f);",
        "positive": "out[i] = fabsf(x[i]) == x[i] ? logf(x[i]) : -logf(0);",
        "NaN": "out[i] = logf(x[i]);",
    }
    vector, loop = "{shape: [N], dtype: float32}", "for (int i = threadIdx.x; i < n; i += 256) "
    found = verdicts(
        tmp_path,
        f"{{x: {vector}}}",
        f"{{out: {vector}}}",
        LOGS,
        *(kernel("x, out", "const float* x, float* out", loop + body) for body in bodies.values()),
    )
    statuses = {name: verdict.status for name, verdict in zip(bodies, found, strict=True)}
    assert statuses == {
        "log": Status.correct,
        "finite": Status.wrong_result,
        "positive": Status.wrong_result,
        "NaN": Status.wrong_result,
    }
    assert "max abs error inf" in found[1].reason and " NaN" not in found[1].reason
