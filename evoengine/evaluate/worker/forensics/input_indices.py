"""Inputs read at another index: the next one, one that is shared, one of another tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from evoengine.evaluate.worker.forensics.axis_words import amount, axis_noun, plural
from evoengine.evaluate.worker.forensics.changed_input import (
    MOST_TILES,
    Change,
    ChangedInputs,
    input_axes,
    one_input,
)
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task


def shared_indices(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """Two inputs read at the same wrong index of a dimension, as keys and values of a head."""
    dims = dict.fromkeys(dim for name in inputs for dim in input_axes(task, name))
    for dim in dims:
        axis = {
            name: input_axes(task, name).index(dim)
            for name in inputs
            if input_axes(task, name).count(dim) == 1
        }
        holders = list(axis)
        pairs = [(a, b) for place, a in enumerate(holders) for b in holders[place + 1 :]]
        for pair in reversed(pairs):
            extent = inputs[pair[0]].shape[axis[pair[0]]]
            at = torch.arange(extent)
            noun = axis_noun(input_axes(task, pair[0]), axis[pair[0]])
            named = {
                f"{dim} = 0": 0 * at,
                f"{dim} i + 1": (at + 1) % extent,
                f"{dim} i - 1": (at - 1) % extent,
            }
            for small in (2, 3, 4, 8) if extent <= 128 else ():
                if small < extent:
                    named |= {f"{dim} i // {small}": at // small, f"{dim} i % {small}": at % small}
                    named[f"{dim} i % {extent // small}"] = at % (extent // small)
            for words, places in named.items():
                if torch.equal(places, at):
                    continue

                def change(
                    given: Tensors,
                    pair: tuple[str, str] = pair,
                    places: torch.Tensor = places,
                    axis: Mapping[str, int] = axis,
                ) -> Tensors:
                    moved = {name: given[name].index_select(axis[name], places) for name in pair}
                    return {**given, **moved}

                yield ChangedInputs(
                    DiagnosisKind.changed_input,
                    f"{' and '.join(pair)} read at {words} where {dim} i is meant",
                    change,
                    mistake=f"{' and '.join(pair)} are read from another {noun}",
                )


def indexed(
    task: Task, name: str, value: torch.Tensor, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """Indices of an axis off by one or by a tile, reversed, broadcast, shared."""
    for axis, dim in enumerate(input_axes(task, name)):
        extent = value.shape[axis]
        if extent < 2:
            continue
        noun = axis_noun(input_axes(task, name), axis)
        for shift in dict.fromkeys((*tiles[:MOST_TILES], *(-tile for tile in tiles[:2]))):
            if abs(shift) < extent:
                words = f"{name} shifted by {shift} along {dim}"
                mistake = f"{name} is read {amount(abs(shift), noun)} {_side(shift)}"
                yield one_input(
                    name,
                    words,
                    lambda x, a=axis, s=shift: x.roll(-s, a),  # type: ignore[misc]
                    1.0,
                    mistake,
                )
        at = torch.arange(extent)
        everywhere = f"{dim} = 0 of {name} everywhere"
        named = {
            everywhere: torch.zeros_like(at),
            f"{name} reversed along {dim}": extent - 1 - at,
            f"pairs of {name} swapped along {dim}": (at ^ 1).clamp_max(extent - 1),
            f"the halves of {name} swapped along {dim}": (at + extent // 2) % extent,
        }
        mistakes = {
            f"{name} reversed along {dim}": f"{name} is read in reverse order (flipped, mirrored)"
            f" along {dim}",
            everywhere: f"the first {noun} of {name} is read for all {plural(noun)}, as if it were"
            " broadcast",
        }
        if extent <= 64:
            for small in (2, 4, 8):
                if small < extent:
                    named[f"{dim} i // {small} of {name} at {dim} i"] = at // small
                    named[f"{dim} i % {small} of {name} at {dim} i"] = at % small
                    named[f"{dim} i % {extent // small} of {name} at {dim} i"] = at % (
                        extent // small
                    )
        for tile in tiles[:MOST_TILES]:
            if tile < extent:
                named[f"the first {tile} along {dim} of {name} for every tile"] = at % tile
        for words, places in named.items():
            if not torch.equal(places, at):
                yield one_input(
                    name,
                    words,
                    _picked(axis, places),
                    0.99,
                    mistakes.get(words, f"{name} is read at the wrong {noun}"),
                )


def flipped(task: Task, name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """An axis before the last two reversed, as heads, or the last two together, as of a filter."""
    axes = input_axes(task, name)
    for axis, dim in enumerate(axes[:-2]):
        if value.shape[axis] > 1:
            noun = plural(axis_noun(axes, axis))
            yield one_input(
                name,
                f"{name} reversed along {dim}",
                lambda x, a=axis: x.flip(a),  # type: ignore[misc]
                1.0,
                f"the {noun} of {name} are in reverse order",
            )
    if value.dim() > 3:
        noun = plural(axis_noun(axes, value.dim() - 3))
        yield one_input(
            name,
            f"{name} reversed along {' and '.join(axes[:-2])} together",
            lambda x: x.flatten(0, -3).flip(0).view_as(x),
            1.0,
            f"the {noun} of {name}, counted over {' and '.join(axes[:-2])}, are in reverse order",
        )
    if value.dim() < 2 or min(value.shape[-2:]) < 2:
        return
    yield one_input(
        name,
        f"{name} reversed along its last two axes",
        lambda x: x.flip(-1, -2),
        1.0,
        f"{name} is flipped along its last two axes (rotated by 180 degrees, in reverse order)",
    )


def shifted_by_one(task: Task, name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """One input off by one index of an axis, or of all axes before the last two together."""
    axes = input_axes(task, name)
    for axis, dim in enumerate(axes):
        for shift in (1, -1) if value.shape[axis] > 2 else ():
            noun = axis_noun(axes, axis)
            words = f"{name} shifted by {shift} along {dim}"
            yield one_input(
                name,
                words,
                lambda x, a=axis, s=shift: x.roll(-s, a),  # type: ignore[misc]
                1.0,
                f"{name} is read from the {'next' if shift > 0 else 'previous'} {noun}, off by one",
            )
    if value.dim() > 3:
        noun = axis_noun(axes, value.dim() - 3)
        for shift in (1, -1):
            yield one_input(
                name,
                f"{name} shifted by {shift} along {' and '.join(axes[:-2])} together",
                lambda x, s=shift: x.flatten(0, -3).roll(-s, 0).view_as(x),  # type: ignore[misc]
                1.0,
                f"{name} is read from the {'next' if shift > 0 else 'previous'} {noun}",
            )


def _side(shift: int) -> str:
    return "ahead" if shift > 0 else "behind"


def _picked(axis: int, places: torch.Tensor) -> Change:
    return lambda value: value.index_select(axis, places)
