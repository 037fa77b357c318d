"""Changes of one input of the reference that are mistakes of real kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evoengine.evaluate.worker.forensics.changed_codes import changed_codes
from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs
from evoengine.evaluate.worker.forensics.input_indices import (
    flipped,
    indexed,
    shared_indices,
    shifted_by_one,
)
from evoengine.evaluate.worker.forensics.input_layouts import (
    exchanged,
    layouts,
    leading_dimensions,
    mixed_tiles,
    outer_strides,
    tile_pitches,
)
from evoengine.evaluate.worker.forensics.input_orders import regrouped, reversed_walks
from evoengine.evaluate.worker.forensics.input_values import of_other_values, of_scales
from evoengine.evaluate.worker.forensics.missing_parts import missing_ends, shortened
from evoengine.evaluate.worker.forensics.padded_rows import padded_rows
from evoengine.evaluate.worker.forensics.swizzled_inputs import without_swizzle
from evoengine.evaluate.worker.forensics.turned_axes import turned_axes
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Task


def exchanged_inputs(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """Inputs taken for one another, other layouts of one, one that is off by one index, and one
    whose values are taken wrongly.
    """
    yield from exchanged(inputs)
    for name, value in inputs.items():
        yield from layouts(task, name, value)
    for name, value in inputs.items():
        yield from shifted_by_one(task, name, value)
        yield from flipped(task, name, value)
    for name, value in inputs.items():
        yield from of_other_values(name, value)
        yield from changed_codes(name, value)
    yield from of_scales(inputs)
    yield from without_swizzle(inputs)


def changed_inputs(
    task: Task, case: str, inputs: Tensors, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """One input read wrongly, the likelier mistakes first; `tiles` are sizes of the plan."""
    for name in inputs:
        yield from missing_ends(task, inputs, name, tiles)
    yield from padded_rows(task, inputs, tiles)
    yield from shared_indices(task, inputs)
    yield from shortened(task, inputs, tiles)
    for name, value in inputs.items():
        yield from indexed(task, name, value, tiles)
    extents = {
        dim: extent
        for dim, extent in task.scope(case).items()
        if isinstance(extent, int) and not isinstance(extent, bool)
    }
    for name, value in inputs.items():
        yield from outer_strides(task, name, value, extents)
    yield from turned_axes(task, inputs)
    for name, value in inputs.items():
        yield from leading_dimensions(name, value, (*extents.values(), *tiles))
    for name, value in inputs.items():
        yield from tile_pitches(name, value, tiles)
    for name, value in inputs.items():
        yield from mixed_tiles(task, name, value, tiles)
    for name, value in inputs.items():
        yield from regrouped(task, name, value, tiles)
    yield from reversed_walks(task, inputs)
