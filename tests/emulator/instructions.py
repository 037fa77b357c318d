"""All tested single instructions: on the emulator here, and on a GPU by
benchmarks/instructions_gpu.py.
"""

from __future__ import annotations

from tests.emulator.conversion_cases import conversion_cases
from tests.emulator.float_cases import float_cases
from tests.emulator.instruction import (
    Case,
    disagreements,
    distances,
    expected,
    grid_of,
    inputs_of,
    ptx_of,
    shown,
)
from tests.emulator.integer_cases import integer_cases

CASES: tuple[Case, ...] = (*integer_cases(), *float_cases(), *conversion_cases())

__all__ = [
    "CASES",
    "Case",
    "disagreements",
    "distances",
    "expected",
    "grid_of",
    "inputs_of",
    "ptx_of",
    "shown",
]
