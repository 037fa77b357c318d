"""Inputs exchanged, transposed, or read with another leading dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun
from evoengine.evaluate.worker.forensics.changed_input import (
    MOST_TILES,
    Change,
    ChangedInputs,
    input_axes,
    one_input,
)
from evoengine.evaluate.worker.forensics.exchanged_places import axis_exchanges, tile_mixes
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

MOST_COLUMNS = 512  # of rows that a tile has whole
TILE_ROWS = (32, 16, 64, 128)
PADS = (0, 4, 8, 1, 2, 16)  # of the rows of a tile
NEARBY = (-1, 1, -8, 8, -4, 4, -2, 2, -16, 16, -32, 32)  # beside the right leading dimension


def exchanged(inputs: Tensors) -> Iterator[ChangedInputs]:
    """Two inputs of one shape swapped, or one read in place of another."""
    names = list(inputs)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            one, other = inputs[first], inputs[second]
            if one.shape != other.shape or one.dtype != other.dtype:
                continue
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"{first} and {second} exchanged",
                mistake=f"{first} and {second} are swapped",
                change=lambda given, a=first, b=second: {**given, a: given[b], b: given[a]},  # type: ignore[misc]
            )
            for target, source in ((first, second), (second, first)):
                yield ChangedInputs(
                    DiagnosisKind.changed_input,
                    f"{source} read in place of {target}",
                    mistake=f"{source} is read where {target} is meant",
                    change=lambda given, a=target, b=source: {**given, a: given[b]},  # type: ignore[misc]
                )


def layouts(task: Task, name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """Two axes swapped, or the memory read as if they were."""
    axes, shape = input_axes(task, name), value.shape
    for first in range(value.dim()):
        for second in range(first + 1, value.dim()):
            if min(shape[first], shape[second]) < 2:
                continue

            def swap(given: torch.Tensor, first: int = first, second: int = second) -> torch.Tensor:
                return given.transpose(first, second).reshape(given.shape)

            def back(given: torch.Tensor, first: int = first, second: int = second) -> torch.Tensor:
                order = list(given.shape)
                order[first], order[second] = order[second], order[first]
                return given.reshape(order).transpose(first, second).contiguous()

            words = f"{name} transposed ({axes[first]} and {axes[second]} swapped)"
            mistake = (
                f"{name} is read as transposed, as if it were stored"
                f" [{_stored(axes, first, second)}]"
            )
            if second < value.dim() - 2:
                one, other = axis_noun(axes, first), axis_noun(axes, second)
                mistake += (
                    f": {one} and {other} are exchanged in its offset, so that another {other} is"
                    " read"
                )
            yield one_input(name, words, back, 1.02, mistake)
            if shape[first] != shape[second]:
                yield one_input(name, f"{words}, read the other way", swap, mistake=mistake)


def _stored(axes: Sequence[str], first: int, second: int) -> str:
    order = list(axes)
    order[first], order[second] = order[second], order[first]
    return ", ".join(order)


def leading_dimensions(
    name: str, value: torch.Tensor, extents: Sequence[int]
) -> Iterator[ChangedInputs]:
    """Rows of an input taken to be shorter or longer than they are; `extents` are of the case."""
    if value.dim() == 1 or not value.is_floating_point():
        return
    columns = value.shape[-1]
    strides = [columns + more for more in NEARBY]
    strides += [*extents, columns // 2, 2 * columns, value.shape[-2]]
    strides += [columns // parts for parts in (4, 8) if columns % parts == 0]
    strides += [2**power for power in range(3, 12) if 2**power < 2 * columns]
    for stride in dict.fromkeys(strides):
        if stride > 0 and stride != columns:
            words = f"{name} read with a leading dimension of {stride} in place of {columns}"
            mistake = (
                f"{name} is loaded with the wrong leading dimension (row length, stride), {stride}"
                f" in place of {columns}"
            )
            yield one_input(name, words, _restrided(stride), 0.99, mistake)


def tile_pitches(name: str, value: torch.Tensor, tiles: Sequence[int]) -> Iterator[ChangedInputs]:
    """Tiles of whole rows that are stored one row after the other and read with the padded pitch of
    another tile; `tiles` are sizes of the plan.
    """
    if value.dim() < 2 or not value.is_floating_point():
        return
    rows, columns = value.shape[-2:]
    if columns > MOST_COLUMNS:
        return
    sizes = dict.fromkeys((*(one for one in tiles[:MOST_TILES] if one >= 8), *TILE_ROWS))
    pitches = dict.fromkeys(
        size + more for size in (*sizes, columns // 2) for more in PADS if size + more < columns
    )
    for size in sizes:
        if size > rows:
            continue
        for pitch in pitches:
            words = f"tiles of {size} rows of {name} read with {pitch} elements from row to row"
            mistake = (
                f"the tile of {name} in shared memory is read with the wrong leading dimension"
                f" (pitch, row length), {pitch} in place of {columns} with which it is stored"
            )
            yield one_input(name, words, partial(_repitched, size, pitch), 1.0, mistake)


def _repitched(size: int, pitch: int, value: torch.Tensor) -> torch.Tensor:
    rows, columns = value.shape[-2:]
    count = -(-rows // size)
    padded = torch.nn.functional.pad(value, (0, 0, 0, count * size - rows))
    flat = padded.unflatten(-2, (count, size)).flatten(-2)
    places = torch.arange(size)[:, None] * pitch + torch.arange(columns)
    read: torch.Tensor = flat[..., places.flatten()].unflatten(-1, (size, columns))
    return read.flatten(-3, -2)[..., :rows, :]


def outer_strides(
    task: Task, name: str, value: torch.Tensor, extents: Mapping[str, int]
) -> Iterator[ChangedInputs]:
    """Another distance from one batch, head or plane to the next: a wrong extent in its product, or
    one that is missing. `extents` are the dimensions of the case by name.
    """
    axes, shape = input_axes(task, name), value.shape
    for axis in range(value.dim() - 2):
        inner = math.prod(shape[axis + 1 :])
        noun = axis_noun(axes, axis)
        tried = {inner, 0}
        for place in range(axis + 1, value.dim()):
            for dim, extent in (*extents.items(), ("", 1)):
                stride = inner // shape[place] * extent
                if stride in tried or stride > 4 * inner:
                    continue
                tried.add(stride)
                factors = [dim if at == place else axes[at] for at in range(axis + 1, value.dim())]
                wrong = " * ".join(filter(None, factors))
                right = " * ".join(axes[axis + 1 :])
                words = f"{name} read with {wrong} elements from one {noun} to the next"
                mistake = (
                    f"the {noun} stride of {name} is wrong: the address steps by {wrong} elements"
                    f" from one {noun} to the next in place of {right}"
                )
                yield one_input(name, words, _outer(axis, stride), 1.0, mistake)


def _outer(axis: int, stride: int) -> Change:
    def change(value: torch.Tensor) -> torch.Tensor:
        shape, flat = value.shape, value.flatten()
        steps = [math.prod(shape[at + 1 :]) for at in range(value.dim())]
        steps[axis] = stride
        place = torch.zeros((), dtype=torch.long)
        for at, step in enumerate(steps):
            index = torch.arange(shape[at]).view(-1, *(1,) * (value.dim() - 1 - at))
            place = place + index * step
        return flat[place % flat.numel()]

    return change


def mixed_tiles(
    task: Task, name: str, value: torch.Tensor, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """Tiles of an input transposed, and places along its last two axes in another order."""
    axes = input_axes(task, name)
    if value.dim() >= 2:
        for mix in tile_mixes(tiles[:MOST_TILES]):
            yield one_input(
                name, f"{name} {mix.words}", mix.mix, 0.99, f"{name} is loaded {mix.words}"
            )
    for axis in range(max(0, value.dim() - 2), value.dim()):
        for exchange in axis_exchanges(tiles[:MOST_TILES]):
            places = exchange.source(value.shape[axis])
            words = f"{name} {exchange.words} along {axes[axis]}"
            mistake = f"{name} is read in the wrong order along {axes[axis]}, {exchange.words}"
            yield one_input(
                name,
                words,
                lambda x, a=axis, p=places: x.index_select(a, p),  # type: ignore[misc]
                0.985,
                mistake,
            )


def _restrided(stride: int) -> Change:
    def change(value: torch.Tensor) -> torch.Tensor:
        rows, columns = value.shape[-2:]
        place = torch.arange(rows).view(-1, 1) * stride + torch.arange(columns)
        planes = value.reshape(-1, rows * columns)
        return planes[:, place.flatten() % (rows * columns)].reshape(value.shape)

    return change
