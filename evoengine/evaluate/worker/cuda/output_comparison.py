"""Compares all outputs of a replay with the references, at once, on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import torch

from evoengine.evaluate.worker.cuda.dealing import DealtCall
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.harness_kernels import DTYPES
from evoengine.evaluate.worker.gate import Errors, relative_rmse
from evoengine.evaluate.worker.slices import slice_elements, tiny_of
from evoengine.task.schema import Task

_COMPARISON = numpy.dtype(
    [(name, numpy.uint64) for name in ("output", "reference", "elements", "row", "dtype")]
    + [(name, numpy.float64) for name in ("atol", "rtol", "tiny")]
)
_FIGURES = numpy.dtype(
    [
        (name, numpy.float64)
        for name in ("max_abs", "needed_atol", "error", "reference", "worst_row")
    ]
    + [(name, numpy.uint64) for name in ("failing", "nan", "infinite")]
)


@dataclass(frozen=True)
class OutputComparison:
    """A comparison under way; `errors` waits for its results."""

    harness: GpuHarness
    calls: Sequence[DealtCall]
    outputs: tuple[str, ...]
    elements: tuple[int, ...]  # by call and output

    def errors(self) -> list[dict[str, Errors]]:
        """The errors of every call by output; the worst elements and slices are not known."""
        empty = numpy.zeros(len(self.elements), dtype=_FIGURES)
        raw = self.harness.figures.read(empty).reshape(len(self.calls), len(self.outputs))
        counts = numpy.array(self.elements).reshape(raw.shape)
        # as tuples: numpy takes a microsecond to look up one field of one row
        return [
            dict(zip(self.outputs, map(_errors, row, count), strict=True))
            for row, count in zip(raw.tolist(), counts.tolist(), strict=True)
        ]


def begin_comparison(
    harness: GpuHarness, task: Task, calls: Sequence[DealtCall], tier: str
) -> OutputComparison:
    """Begins to compare every output of `calls`, where they lie, under its gate of `tier`."""
    rows = [_row(task, call, name, tier) for call in calls for name in task.outputs]
    table = numpy.array(rows, dtype=_COMPARISON)
    figures = harness.figures.clear(_FIGURES.itemsize * len(rows))
    harness.kernels.compare(harness.comparisons.write(table), len(rows), figures)
    elements = tuple(table["elements"].tolist())
    return OutputComparison(harness, calls, tuple(task.outputs), elements)


def _row(task: Task, call: DealtCall, name: str, tier: str) -> tuple[float, ...]:
    expected = call.given.expected
    reference, gate = expected.reference[name], expected.gates[tier][name]
    dtype = task.outputs[name].dtype
    return (
        call.places[name].address,
        reference.data_ptr(),
        reference.numel(),
        slice_elements(tuple(reference.shape)),
        DTYPES[dtype],
        gate.atol,
        gate.rtol,
        tiny_of(getattr(torch, dtype)),
    )


def _errors(figures: Sequence[float], elements: int) -> Errors:
    """The errors of one output of `elements` elements, from its Figures of kernels.cu."""
    max_abs, needed_atol, error, reference, worst_row, failing, nan, infinite = figures
    return Errors(
        max_abs=max_abs,
        rel_rmse=relative_rmse(error, reference, elements - int(infinite)),
        failing=int(failing),
        elements=elements,
        nan_count=int(nan),
        needed_atol=needed_atol,
        slice_rel_rmse=worst_row,
    )
