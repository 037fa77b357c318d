"""Steps done otherwise at some places of a row: for one of every four, with a neighbour's value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

TILES = (32, 64, 16, 128, 256)
PACKS = (2, 4, 8)  # elements that a thread reads at once
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
# (the places along an axis) -> the places that are read
Read = Callable[[torch.Tensor], torch.Tensor]


def changed_places(steps: Sequence[ReferenceStep], tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Every operation on two operands, at some places of the last axis, or with another's value."""
    for step in steps:
        if step.name in BINARY:
            yield from _missing_at_some(step)
            for number in (0, 1):
                yield from _of_neighbours(step, number)
                yield from _in_tiles(step, number, tiles)


def _missing_at_some(step: ReferenceStep) -> Iterator[ChangedStep]:
    named = step.operand(1) or "the second operand"
    for pack in PACKS:
        for place in range(pack):
            which = f"the {ORDINALS[place]} of every {pack} elements"
            yield change(
                step,
                f"without {named} at {which} in {step.words}",
                _without(lambda at, p=pack, one=place: at % p == one),  # type: ignore[misc]
                1.0,
                f"{named} is missing (not applied) for {which} of a row",
            )


def _of_neighbours(step: ReferenceStep, number: int) -> Iterator[ChangedStep]:
    named = step.operand(number)
    if not named:
        return
    reads: dict[str, Read] = {}
    for pack in PACKS:
        reads[f"of the first of every {pack} elements"] = lambda at, p=pack: at - at % p  # type: ignore[misc]
        reads[f"of the last of every {pack} elements"] = lambda at, p=pack: at - at % p + p - 1  # type: ignore[misc]
    reads["with neighbours, even and odd places, exchanged"] = lambda at: at ^ 1
    for words, read in reads.items():
        yield change(
            step,
            f"with {named} {words} in {step.words}",
            _reading(number, read),
            0.99,
            f"{named} is that {words} (of a neighbour, another column)"
            if words.startswith("of")
            else f"{named} is taken {words}, from another column",
        )


def _in_tiles(step: ReferenceStep, number: int, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """An index without the offset of its tile, and one that is off by one."""
    named = step.operand(number)
    if not named:
        return
    for size in dict.fromkeys((*tiles[:MOST_TILES], *TILES)):
        yield change(
            step,
            f"with {named} at i modulo {size} in place of i in {step.words}",
            _reading(number, lambda at, s=size: at % s),  # type: ignore[misc]
            1.0,
            f"{named} is read at the index inside of its tile of {size}: the offset of the tile"
            f" (chunk) is missing, so that it begins again every {size}",
        )
    for step_by, which in ((1, "next"), (-1, "previous")):
        for noun, of_rows in (("element", False), ("row", True)):
            yield change(
                step,
                f"with the {which} {noun} of {named} in place of each in {step.words}",
                _reading(number, lambda at, d=step_by: (at + d) % len(at), of_rows),  # type: ignore[misc]
                1.0,
                f"{named} is taken from the {which} {noun}, shifted by one (off by one)",
            )


def _without(at_place: Callable[[torch.Tensor], torch.Tensor]) -> Instead:
    """The first operand in place of the result at some places of the last axis."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        right = func(*args, **kwargs)
        first = args[0]
        if not isinstance(first, torch.Tensor) or right.dim() == 0:
            raise ValueError("no tensor to keep")
        where = at_place(torch.arange(right.shape[-1], device=right.device))
        return torch.where(where, first.to(right.dtype), right)

    return instead


def _reading(number: int, read: Read, of_rows: bool | None = None) -> Instead:
    """Another index of the operand along its last axis, or of rows that have one element each;
    `of_rows`: of these alone, or never of these.
    """

    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value = args[number]
        axis = _last_axis(value)
        if of_rows is not None and of_rows != (axis != -1):
            raise ValueError("another axis")
        extent = value.shape[axis]
        at = torch.arange(extent, device=value.device)
        places = read(at).clamp(max=extent - 1)
        if bool((places == at).all()):
            raise ValueError("no change")
        given = list(args)
        given[number] = value.index_select(axis, places)
        return func(*given, **kwargs)

    return instead


def _last_axis(value: Any) -> int:
    """The last axis of an operand that has several indices: rows, where it is a column."""
    axes = range(-1, -value.dim() - 1, -1) if isinstance(value, torch.Tensor) else ()
    for axis in axes:
        if value.shape[axis] > 1:
            return axis
    raise ValueError("no axis to read along")
