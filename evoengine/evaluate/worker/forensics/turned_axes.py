"""Parts of an axis taken in turn where they lie in a row, or the other way round.

Channels of a norm's group, pairs of a rotary embedding, heads: a kernel that takes every n-th one
computes what the reference gives for inputs in another order, each result at its own place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs, input_axes
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

PARTS = (2, 4, 8, 3, 16, 32)
MOST_PARTS = 6


def turned_axes(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """Every dimension that the outputs have, in all inputs alike or in one of several."""
    dims = {dim for spec in task.outputs.values() for dim in spec.shape if dim.isidentifier()}
    for dim in sorted(dims):
        names = [name for name in inputs if input_axes(task, name).count(dim) == 1]
        extent = next((inputs[one].shape[input_axes(task, one).index(dim)] for one in names), 0)
        groups = [names, *([one] for one in names if len(names) > 1)]
        for parts in dict.fromkeys((*PARTS[:MOST_PARTS],)):
            if extent % parts or extent < 2 * parts:
                continue
            for group in groups:
                for count in dict.fromkeys((parts, extent // parts)):
                    yield _turned(task, dim, group, extent, count)


def _turned(task: Task, dim: str, names: Sequence[str], extent: int, parts: int) -> ChangedInputs:
    order = torch.arange(extent).view(parts, -1).mT.flatten()
    back = order.argsort()
    named = " and ".join(names)
    return ChangedInputs(
        DiagnosisKind.changed_input,
        f"{named} taken in turn along {dim}, element i with i + {extent // parts} as neighbours,"
        " and each result at its own place",
        _permuted({name: input_axes(task, name).index(dim) for name in names}, order),
        weight=0.99,
        mistake=f"the parts of {dim} are mapped wrongly (halves, groups, pairs): elements of"
        f" {named} that lie {extent // parts} apart are taken in place of neighbours, or neighbours"
        " (interleaved, i % n for i / n) in place of those",
        after=_permuted(
            {
                name: list(spec.shape).index(dim)
                for name, spec in task.outputs.items()
                if dim in spec.shape
            },
            back,
        ),
    )


def _permuted(axes: dict[str, int], order: torch.Tensor) -> Callable[[Tensors], Tensors]:
    """Some tensors with the indices of one axis in another order."""

    def changed(given: Tensors) -> Tensors:
        return {
            name: value.index_select(axes[name], order.to(value.device)) if name in axes else value
            for name, value in given.items()
        }

    return changed
