"""Changes of one input of the reference that are mistakes of real kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs
from evoengine.evaluate.worker.forensics.input_indices import (
    indexed,
    shared_indices,
    shifted_by_one,
)
from evoengine.evaluate.worker.forensics.input_layouts import (
    exchanged,
    layouts,
    leading_dimensions,
    mixed_tiles,
)
from evoengine.evaluate.worker.forensics.input_values import of_other_values
from evoengine.evaluate.worker.forensics.missing_parts import missing_ends, shortened
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Task


def exchanged_inputs(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """Inputs taken for one another, other layouts of one, and one that is off by one index."""
    yield from exchanged(inputs)
    for name, value in inputs.items():
        yield from layouts(task, name, value)
    for name, value in inputs.items():
        yield from shifted_by_one(task, name, value)


def changed_inputs(
    task: Task, case: str, inputs: Tensors, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """One input read wrongly, the likelier mistakes first; `tiles` are sizes of the plan."""
    for name, value in inputs.items():
        yield from of_other_values(name, value)
    for name in inputs:
        yield from missing_ends(task, inputs, name, tiles)
    yield from shared_indices(task, inputs)
    yield from shortened(task, inputs, tiles)
    for name, value in inputs.items():
        yield from indexed(task, name, value, tiles)
    extents = [
        extent
        for extent in task.scope(case).values()
        if isinstance(extent, int) and not isinstance(extent, bool)
    ]
    for name, value in inputs.items():
        yield from leading_dimensions(name, value, (*extents, *tiles))
    for name, value in inputs.items():
        yield from mixed_tiles(task, name, value, tiles)
