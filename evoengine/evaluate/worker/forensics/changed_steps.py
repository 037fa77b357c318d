"""The reference with one step left out, done twice, or done as kernels do it wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evoengine.evaluate.worker.forensics.changed_masks import changed_masks
from evoengine.evaluate.worker.forensics.changed_operations import (
    done_twice,
    left_out,
    other_operations,
)
from evoengine.evaluate.worker.forensics.changed_order import changed_order
from evoengine.evaluate.worker.forensics.changed_products import changed_products
from evoengine.evaluate.worker.forensics.changed_reductions import (
    centred_by_parts,
    divided_wrongly,
    of_other_rows,
    of_some_terms,
)
from evoengine.evaluate.worker.forensics.changed_scans import joined_scans
from evoengine.evaluate.worker.forensics.changed_scatters import changed_scatters
from evoengine.evaluate.worker.forensics.changed_softmax import changed_softmax
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep
from evoengine.evaluate.worker.forensics.reference_steps import StepRecorder, steps_in_order
from evoengine.evaluate.worker.inputs import Tensors


def changed_steps(
    recorder: StepRecorder, inputs: Tensors, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """All changes of the recorded steps, the likelier and cheaper ones first."""
    steps = steps_in_order(recorder)
    for step in steps:
        yield from left_out(step)
        yield from divided_wrongly(step)
    yield from changed_order(steps, recorder, inputs)
    for step in steps:
        yield from changed_masks(step, tiles)
        yield from other_operations(step)
        yield from done_twice(step)
    for step in steps:
        yield from changed_scatters(step, tiles)
        yield from joined_scans(step, tiles)
    yield from of_other_rows(steps, tiles)
    for step in steps:
        yield from changed_softmax(step, tiles)
    yield from of_some_terms(steps, tiles)
    for step in steps:
        yield from changed_products(step, tiles)
    yield from centred_by_parts(steps)
