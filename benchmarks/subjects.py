"""The kernels that verdicts are measured on: seeds as they are, spoiled ones, and those that take a
worker down.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from evoengine.task.schema import Task

KERNELS = {
    "sdpa_h200": (
        "sdpa_v2b",
        "sdpa_v2c",
        "sdpa_v2c_wmma_qk",
        "sdpa_v2c_wmma",
        "sdpa_fp8",
        "sdpa_mma",
    ),
    "layernorm": ("layernorm",),
    "matmul_fp16": ("matmul_fp16",),
    "embedding_bag": ("embedding_bag",),
    "adamw": ("adamw",),
}

# One change each that still compiles: a sign, or a grid that leaves out half of the rows.
FLAWS = {
    "sdpa_v2b": ("S, scale]", 'S, "-scale"]'),
    "sdpa_mma": ('"ceil_div(S, BLOCK_M)"', '"ceil_div(S, 2 * BLOCK_M)"'),
    "layernorm": ('"ceil_div(N, ROWS_PER_BLOCK)"', '"ceil_div(N, 2 * ROWS_PER_BLOCK)"'),
    "matmul_fp16": ('"ceil_div(M, BLOCK_M)"', '"ceil_div(M, 2 * BLOCK_M)"'),
}

_FATAL = """/* evoengine
name: NAME
precision: TIER
launches:
  - {kernel: NAME, grid: [1], block: [32], args: [OUTPUT]}
*/
extern "C" __global__ void NAME(volatile unsigned char* out) { BODY }
"""
# The loop reads memory that could change any time, so that the compiler must keep it.
_ENDLESS = "while (out[0] == out[0] || out[1] != 1) {}"
_TRAP = 'asm volatile("trap;");'


def numbers() -> Iterator[int]:
    """Numbers that no earlier benchmark on this machine has used, for `renewed`."""
    return itertools.count(time.time_ns() % 2**30)


def renewed(source: str, number: int) -> str:
    """The same kernel as code that no cache has seen: one more constant, which nothing reads."""
    return f"{source}\n__constant__ int evoengine_repetition = {number};\n"


def wrong(kernel: str, source: str) -> str:
    """The source with its flaw: it compiles, runs, and its result is wrong."""
    before, after = FLAWS[kernel]
    if source.count(before) != 1:
        raise ValueError(
            f"expected {before!r} once in {kernel}, found {source.count(before)} times"
        )
    return source.replace(before, after)


def uncompilable(source: str) -> str:
    """The source with a name that was never declared."""
    return f"{source}\n__device__ int broken() {{ return undeclared_name; }}\n"


def endless(task: Task) -> str:
    """A kernel that never ends, so that its worker must be killed."""
    return _fatal(task, "endless", _ENDLESS)


def trapping(task: Task) -> str:
    """A kernel that breaks the device's context at once, so that its worker must be replaced."""
    return _fatal(task, "trapping", _TRAP)


def _fatal(task: Task, name: str, body: str) -> str:
    words = {
        "NAME": name,
        "TIER": next(iter(task.tiers)),
        "OUTPUT": next(iter(task.outputs)),
        "BODY": body,
    }
    text = _FATAL
    for word, value in words.items():
        text = text.replace(word, value)
    return text
