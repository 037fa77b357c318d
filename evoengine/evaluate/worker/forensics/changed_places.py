"""Steps done otherwise at some places of a row: for one of every four, with a neighbour's value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

PACKS = (2, 4, 8)  # elements that a thread reads at once
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
# (the places along an axis) -> the places that are read
Read = Callable[[torch.Tensor], torch.Tensor]


def changed_places(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """Every operation on two operands, at some places of the last axis, or with another's value."""
    for step in steps:
        if step.name in BINARY:
            yield from _missing_at_some(step)
            for number in (0, 1):
                yield from _of_neighbours(step, number)


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


def _reading(number: int, read: Read) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value = args[number]
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.shape[-1] < 2:
            raise ValueError("no axis to read along")
        extent = value.shape[-1]
        places = read(torch.arange(extent, device=value.device)).clamp(max=extent - 1)
        given = list(args)
        given[number] = value.index_select(-1, places)
        return func(*given, **kwargs)

    return instead
