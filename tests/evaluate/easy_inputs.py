"""Real kernels whose faults only show on inputs of a kind that the task asks for."""

from __future__ import annotations

from pathlib import Path

from evoengine.records import Status, Verdict

TASK = """
name: NAME
reference: reference.py:NAME
dims: {N: {multiple_of: 4}, C: int}
inputs:
INPUTS
outputs: {OUTPUTS}
cases: {small: {N: 64, C: 128}}
hidden_cases: {odd: {N: 4, C: 77}}
tiers: {TIER}
objective: {cases: [small]}
baselines: {torch: reference.py:NAME}
budget: {trials: 1}
"""
INPUTS = {
    "squares": "  x: {shape: [N, C], dtype: float16}",
    "softmax": "  x: {shape: [N, C], dtype: float32}",
    "rows": (
        "  table: {shape: [1000, C], dtype: float32}\n"
        "  index: {shape: [N], dtype: int32, draw: {dist: uniform, low: 0, high: 1000}}"
    ),
    "several": (
        "  x: {shape: [N, C], dtype: float32}\n  state: {shape: [N, C], dtype: float32}\n"
        "  rate: {value: 1e-6, dtype: float32}"
    ),
    "bags": (
        "  x: {shape: [C], dtype: float32, draw: {positive: true, shift: 1}}\n"
        "  offsets: {shape: [N + 1], dtype: int32, draw: {dist: offsets, high: C}}\n"
        "  bias: {shape: [N], dtype: float32, draw: 'reference.py:biases'}"
    ),
}
OUTPUTS = {
    "squares": "out: {shape: [N], dtype: float32}",
    "softmax": "out: {shape: [N, C], dtype: float32}",
    "rows": "out: {shape: [N, C], dtype: float32}",
    "bags": "out: {shape: [N], dtype: float32}",
    # of one number, partly -inf, and changed in place: all unlike in size
    "several": (
        "total: {shape: [], dtype: float32, init: 0}, logs: {shape: [N, C], dtype: float32},"
        " state: {shape: [N, C], dtype: float32, inout: true}"
    ),
}
REFERENCE = """
import torch

def squares(x):
    return x.square().sum(-1)

def softmax(x):
    return torch.softmax(x, dim=-1)

def rows(table, index):
    return table[index.long()].clone()

def several(x, state, rate):
    return 1000 * x.abs().sum(), torch.log(x.clamp(min=0)), state - rate * x

def biases(generator, shape, distribution):
    return torch.rand(shape, generator=generator, device=generator.device) + 1

def bags(x, offsets, bias):
    sums = torch.cat([x.new_zeros(1), x.cumsum(0)])
    ends = offsets.long()
    mean = (sums[ends[1:]] - sums[ends[:-1]]) / (ends[1:] - ends[:-1]).clamp(min=1)
    return mean + bias
"""

EXACT = "fp32: {atol: 1e-5, rtol: 1e-5, rel_rmse: 1e-5, trusted: reference.py:NAME}"
TIERS = {
    "squares": "fp16: {atol: 1e-2, rtol: 1e-2, rel_rmse: 1e-2}",
    "several": (
        "fp32: {atol: 1e-6, rtol: 1e-6, rel_rmse: 1e-6, outputs: {total: {atol: 1, rtol: 1e-5, rel_rmse: 1e-5}}}"
    ),
}

SQUARES = """\
/* evoengine
name: squares
precision: fp16
launches:
  - {kernel: squares, grid: [N], block: [32], args: [x, out, C]}
*/
#include <cuda_fp16.h>
using sum_t = float;
extern "C" __global__ void squares(const __half* x, float* out, int C) {
    x += blockIdx.x * C;
    sum_t sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 32) sum = sum + sum_t(x[i]) * sum_t(x[i]);
    for (int step = 16; step; step /= 2) sum = sum + sum_t(__shfl_xor_sync(~0u, sum, step));
    if (threadIdx.x == 0) out[blockIdx.x] = float(sum);
}
"""
HALF_SUM = SQUARES.replace("using sum_t = float", "using sum_t = __half")

SOFTMAX = """\
/* evoengine
name: softmax
precision: fp32
launches:
  - {kernel: softmax, grid: [N], block: [1], args: [x, out, C]}
*/
extern "C" __global__ void softmax(const float* x, float* out, int C) {
    x += blockIdx.x * C; out += blockIdx.x * C;
    float top = -3e38f, sum = 0;
    for (int i = 0; i < C; ++i) top = fmaxf(top, x[i]);
    for (int i = 0; i < C; ++i) sum += expf(x[i] - top);
    for (int i = 0; i < C; ++i) out[i] = expf(x[i] - top) / sum;
}
"""
WITHOUT_MAXIMUM = SOFTMAX.replace("top = fmaxf(top, x[i])", "top = 0")

ROWS = """\
/* evoengine
name: rows
precision: fp32
launches:
  - {kernel: rows, grid: [N], block: [32], args: [table, index, out, C]}
*/
extern "C" __global__ void rows(const float* table, const int* index, float* out, int C) {
    int row = index[blockIdx.x];
    for (int i = threadIdx.x; i < C; i += 32) out[blockIdx.x * C + i] = table[row * C + i];
}
"""
SMALL_INDICES = ROWS.replace("int row = index", "int row = (signed char)index")
LAST_ROW_MISSING = ROWS.replace(
    "int row = index[blockIdx.x];",
    """\
int row = index[blockIdx.x];
    if (row == 999) row = 998;""",
)

BAGS = """\
/* evoengine
name: bags
precision: fp32
launches:
  - {kernel: bags, grid: ["N / 4"], block: [4], args: [x, offsets, bias, out]}
*/
extern "C" __global__ void bags(const float* x, const int* offsets, const float* bias, float* out) {
    int bag = blockIdx.x * 4 + threadIdx.x, first = offsets[bag], end = offsets[bag + 1];
    double sum = 0;
    for (int i = first; i < end; ++i) sum += x[i];
    out[bag] = float(sum / max(end - first, 1)) + bias[bag];
}
"""
NO_EMPTY_BAG = BAGS.replace("max(end - first, 1)", "(end - first)")

SEVERAL = """\
/* evoengine
name: several
precision: fp32
launches:
  - {kernel: several, grid: [N], block: [32], args: [x, total, logs, state, C, rate]}
*/
extern "C" __global__ void several(
    const float* x, float* total, float* logs, float* state, int C, float rate) {
    x += blockIdx.x * C; logs += blockIdx.x * C; state += blockIdx.x * C;
    float sum = 0;
    for (int i = threadIdx.x; i < C; i += 32) {
        sum += fabsf(x[i]);
        logs[i] = logf(fmaxf(x[i], 0.0f));
        state[i] -= rate * x[i];
    }
    atomicAdd(total, 1000 * sum);
}
"""
STATE_AS_IT_WAS = SEVERAL.replace("state[i] -= rate * x[i];", "")
FINITE_LOGS = SEVERAL.replace("fmaxf(x[i], 0.0f)", "fmaxf(x[i], 1e-38f)")
NO_TOTAL = SEVERAL.replace("atomicAdd(total, 1000 * sum);", "")


# By name of the task: a kernel that is right, and such as are right on easy inputs only.
KERNELS = {
    "squares": (SQUARES, (HALF_SUM,)),
    "softmax": (SOFTMAX, (WITHOUT_MAXIMUM,)),
    "rows": (ROWS, (SMALL_INDICES, LAST_ROW_MISSING)),
    "bags": (BAGS, (NO_EMPTY_BAG,)),
    "several": (SEVERAL, (STATE_AS_IT_WAS, FINITE_LOGS, NO_TOTAL)),
}
ONLY_EXTREME = ("squares", "softmax")


def write_task(folder: Path, name: str) -> Path:
    """Writes the task `name` with its reference and returns its path."""
    (folder / "reference.py").write_text(REFERENCE)
    text = TASK.replace("INPUTS", INPUTS[name]).replace("{OUTPUTS}", f"{{{OUTPUTS[name]}}}")
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("TIER", TIERS.get(name, EXACT)).replace("NAME", name))
    return path


def expect_refusals(name: str, verdicts: list[Verdict]) -> None:
    """Asserts that the first of the kernels of a task is correct and the others are refused, for
    the reason that its name says.
    """
    first, *others = verdicts
    assert first.status is Status.correct, (first.reason, first.detail)
    assert len(others) == len(KERNELS[name][1])
    for verdict in others:
        assert verdict.status in (Status.wrong_result, Status.fault), verdict.reason
        failing = {
            item.distribution for check in verdict.checks for item in check.sets if not item.ok
        }
        assert name not in ONLY_EXTREME or failing == {"extreme"}
