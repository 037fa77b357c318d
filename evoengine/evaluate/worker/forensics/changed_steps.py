"""The reference with one step left out, done twice, or done as kernels do it wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evoengine.evaluate.worker.forensics.changed_axes import changed_axes
from evoengine.evaluate.worker.forensics.changed_branches import changed_branches
from evoengine.evaluate.worker.forensics.changed_choices import changed_choices
from evoengine.evaluate.worker.forensics.changed_conditions import changed_conditions
from evoengine.evaluate.worker.forensics.changed_constants import changed_constants
from evoengine.evaluate.worker.forensics.changed_divisors import other_divisors
from evoengine.evaluate.worker.forensics.changed_gathers import changed_gathers
from evoengine.evaluate.worker.forensics.changed_halves import changed_halves
from evoengine.evaluate.worker.forensics.changed_indices import changed_indices
from evoengine.evaluate.worker.forensics.changed_masks import changed_masks
from evoengine.evaluate.worker.forensics.changed_operands import changed_operands
from evoengine.evaluate.worker.forensics.changed_operations import (
    done_twice,
    left_out,
    other_operations,
)
from evoengine.evaluate.worker.forensics.changed_order import changed_order
from evoengine.evaluate.worker.forensics.changed_places import changed_places
from evoengine.evaluate.worker.forensics.changed_products import changed_products, plain_products
from evoengine.evaluate.worker.forensics.changed_recurrences import changed_recurrences
from evoengine.evaluate.worker.forensics.changed_reductions import (
    centred_by_parts,
    divided_wrongly,
    of_some_terms,
    up_to_own_part,
)
from evoengine.evaluate.worker.forensics.changed_registers import changed_registers
from evoengine.evaluate.worker.forensics.changed_resampling import changed_resampling
from evoengine.evaluate.worker.forensics.changed_scans import joined_scans
from evoengine.evaluate.worker.forensics.changed_scatters import changed_scatters, group_noun
from evoengine.evaluate.worker.forensics.changed_segments import (
    changed_segments,
    sliced_segments,
)
from evoengine.evaluate.worker.forensics.changed_softmax import changed_softmax, plain_softmax
from evoengine.evaluate.worker.forensics.changed_solves import changed_solves
from evoengine.evaluate.worker.forensics.changed_statistics import of_other_rows
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep
from evoengine.evaluate.worker.forensics.changed_windows import (
    changed_strides,
    changed_windows,
    undilated,
)
from evoengine.evaluate.worker.forensics.chunked_sums import chunked_sums
from evoengine.evaluate.worker.forensics.half_masked_softmax import half_masked_softmax
from evoengine.evaluate.worker.forensics.lane_maxima import lane_maxima
from evoengine.evaluate.worker.forensics.lane_totals import lane_totals
from evoengine.evaluate.worker.forensics.padded_exponentials import padded_exponentials
from evoengine.evaluate.worker.forensics.padded_spread import padded_spread
from evoengine.evaluate.worker.forensics.reference_steps import StepRecorder, steps_in_order
from evoengine.evaluate.worker.forensics.relaid_parts import relaid_parts
from evoengine.evaluate.worker.forensics.remade_operands import remade_operands
from evoengine.evaluate.worker.forensics.short_halos import short_halos
from evoengine.evaluate.worker.forensics.softmax_parts import softmax_of_a_part
from evoengine.evaluate.worker.forensics.unpacked_codes import unpacked_codes
from evoengine.evaluate.worker.forensics.unscaled_sums import unscaled_sums


def plain_changes(
    recorder: StepRecorder,
    tiles: Sequence[int],
    extents: Mapping[str, int],
    begins: Sequence[int] = (),
) -> Iterator[ChangedStep]:
    """Changes of the recorded steps that are few for each, the likelier ones first; `tiles` are
    sizes of the candidate's plan, `extents` the dimensions of the case by name, and `begins` the
    indices at which the error begins along its axes: there a second chunk may.
    """
    parts = (*tiles, *begins)
    steps = steps_in_order(recorder)
    for step in steps:
        yield from plain_softmax(step)
    for step in steps:
        yield from left_out(step)
        yield from divided_wrongly(step)
    yield from changed_order(steps, recorder)
    yield from changed_recurrences(recorder, parts, extents)
    for step in steps:
        yield from changed_masks(step, tiles)
        yield from changed_conditions(step, tiles)
        yield from other_operations(step)
        yield from done_twice(step)
    for step in steps:
        noun = group_noun(recorder, step, extents)
        yield from changed_scatters(step, noun, tiles)
        yield from changed_segments(step, noun)
        yield from joined_scans(step, parts)
        yield from changed_windows(step, tiles)
        yield from changed_resampling(step)
        yield from changed_solves(step, tiles)
    yield from changed_strides(steps)
    for step in steps:
        yield from changed_choices(step)
    yield from changed_gathers(steps, recorder, tiles)
    yield from undilated(steps)
    yield from short_halos(steps, tiles)
    yield from changed_branches(steps, recorder)


def detailed_changes(
    recorder: StepRecorder,
    tiles: Sequence[int],
    extents: Mapping[str, int],
    has_scratch: bool = False,
) -> Iterator[ChangedStep]:
    """The other changes, which are many; `extents` are the dimensions of the case by name, and a
    kernel that `has_scratch` may keep partial results there.
    """
    steps = steps_in_order(recorder)
    for step in steps:
        yield from sliced_segments(step, group_noun(recorder, step, extents), tiles)
    yield from unpacked_codes(steps)
    yield from changed_halves(steps)
    yield from changed_indices(recorder, extents)
    numbers = {**extents, **{f"a number of the plan, {size}": size for size in tiles}}
    yield from other_divisors(steps, numbers)
    yield from changed_axes(steps)
    yield from of_other_rows(steps, recorder, tiles)
    if has_scratch:
        yield from relaid_parts(steps, tiles)
    for step in steps:
        yield from plain_products(step, tiles)
    yield from changed_registers(steps, tiles)
    yield from lane_maxima(steps, tiles)
    for step in steps:
        yield from changed_softmax(step, tiles)
    yield from unscaled_sums(steps, recorder, tiles)
    yield from half_masked_softmax(steps, tiles)
    yield from padded_spread(steps, recorder, tiles)
    yield from padded_exponentials(steps, recorder, tiles)
    yield from of_some_terms(steps, tiles)
    yield from lane_totals(steps)
    yield from chunked_sums(steps, tiles)
    products = [step for step in steps if step.name == "matmul"]
    for step in products:
        yield from changed_products(step, tiles, is_last=step is products[-1])
    for step in steps:
        yield from softmax_of_a_part(step, tiles)
    yield from centred_by_parts(steps)
    yield from up_to_own_part(steps, extents)
    yield from changed_constants(steps)
    yield from changed_places(steps, tiles)
    yield from changed_operands(recorder)
    yield from remade_operands(recorder)
