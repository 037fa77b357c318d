"""The task `scale` (y = 2 x) with two starting kernels, for tests that need a small task."""

from __future__ import annotations

from pathlib import Path

from evoengine.task.load import load_task
from evoengine.task.schema import Task

TASK = """\
name: scale
reference: scale.py:forward
dims: {N: int}
inputs:
  x: {shape: [N], dtype: float32}
outputs:
  y: {shape: [N], dtype: float32}
cases:
  small: {N: 1024}
  large: {N: 65536}
hidden_cases:
  odd: {N: 77}
tiers:
  fp32: {atol: 1e-6, rel_rmse: 1e-6}
  fp16: {atol: 1e-3, rel_rmse: 1e-3}
objective: {cases: [large]}
baselines: {torch.mul: scale.py:forward}
target: {arch: sm_89, registers: 72, shared: 99KiB}
seeds_from: [scale_a.cu, scale_b.cu]
budget: {trials: 8}
"""

KERNEL = """\
/* evoengine
name: NAME
precision: TIER
tunables:
  BLOCK: [128, 64, 32, 256]   # threads
  UNROLL: [4, 2, 1]
launches:
  - kernel: scale
    grid: ["ceil_div(N, BLOCK)"]
    block: [BLOCK]
    args: [x, y, N]
*/
// NAME
extern "C" __global__ void scale(const float* x, float* y, long long n) { y[0] = 2 * x[0]; }
namespace kernel_NAME {}
"""


def kernel(name: str, tier: str = "fp32") -> str:
    return KERNEL.replace("NAME", name).replace("TIER", tier)


def write_task(folder: Path) -> Path:
    """The path of the task file, with its reference and its two kernels beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.py").write_text("def forward(x):\n    return 2 * x\n")
    (folder / "scale_a.cu").write_text(kernel("scale_a"))
    (folder / "scale_b.cu").write_text(kernel("scale_b", "fp16"))
    (folder / "scale.yaml").write_text(TASK)
    return folder / "scale.yaml"


def load_scale_task(folder: Path) -> Task:
    return load_task(write_task(folder))
