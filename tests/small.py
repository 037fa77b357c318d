"""A small task and a small kernel, for tests to bend."""

from __future__ import annotations

from typing import Any

from evoengine.candidate.arch import DeviceLimits
from evoengine.task.schema import Task

LIMITS = DeviceLimits("sm_89", max_shared_bytes=101376, sm_count=58)

TASK_DATA: dict[str, Any] = {
    "name": "scale_rows",
    "reference": "scale_rows.py:forward",
    "dims": {"N": "int", "C": "int", "flip": "bool"},
    "inputs": {
        "x": {"shape": ["N", "C"], "dtype": "float32"},
        "factor": {"value": "1/sqrt(C)", "dtype": "float32"},
    },
    "outputs": {"out": {"shape": ["N", "C"], "dtype": "float32"}},
    "cases": {
        "plain": {"N": 64, "C": 96, "flip": False},
        "flipped": {"N": 3, "C": 40, "flip": True},
    },
    "hidden_cases": {"odd": {"N": 7, "C": 1234567, "flip": True}},
    "tiers": {"fp32": {"atol": 1e-6, "rel_rmse": 1e-6}},
    "objective": {"cases": ["plain"]},
    "baselines": {"torch.mul": "scale_rows.py:forward"},
    "budget": {"trials": 10},
}

HEADER = """\
name: scale_rows
precision: fp32
tunables:
  THREADS: [256, 128, 512]
  ROWS: [1, 2]
launches:
  - kernel: scale<ROWS, flip>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 4*THREADS
    args: [x, out, C, factor]
"""
CODE = (
    "\ntemplate <int R, bool F> __global__ void scale(const float* x, float* out, int C, float"
    " factor) {}\n"
)


def small_task(**changes: Any) -> Task:
    """The task with some of its keys replaced."""
    return Task.model_validate({**TASK_DATA, **changes})


def kernel(header: str = HEADER, code: str = CODE) -> str:
    """The text of a kernel file."""
    return f"/* evoengine\n{header}*/{code}"


def changed(old: str, new: str) -> str:
    """The kernel file in which the words `old` of the header read `new`."""
    assert HEADER.count(old) == 1, f"{old!r} must stand once in the header"
    return kernel(HEADER.replace(old, new))
