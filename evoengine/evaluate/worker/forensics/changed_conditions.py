"""Comparisons off by one, conditions that are forgotten, and other choices of places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_masks import any_in_tile
from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# what a comparison is off by one as, what is its opposite
BESIDE = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
ALL_OF = {"__and__", "bitwise_and", "logical_and", "__iand__"}
ANY_OF = {"__or__", "bitwise_or", "logical_or", "__ior__"}
TILES = (16, 32, 64, 128, 8)
CHOICES = {"argmax", "argmin", "sort", "argsort", "topk", "kthvalue"}


def changed_conditions(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that compares, joins conditions, or chooses places by values."""
    if step.name in SIGNS:
        yield from _compared(step)
    if step.name in BESIDE:
        yield from _rounded_bounds(step, tiles)
        yield from _whole_tiles(step, tiles)
    if step.name in ALL_OF | ANY_OF:
        yield from _joined(step)
    if step.name in CHOICES:
        yield from _chosen(step)


def _mask(step: ReferenceStep, words: str, instead: Instead, mistake: str) -> ChangedStep:
    said = f"{words} in {step.words}"
    return ChangedStep(DiagnosisKind.mask, said, {step.place: instead}, 1.04, mistake=mistake)


def _compared(step: ReferenceStep) -> Iterator[ChangedStep]:
    sign = SIGNS[step.name]
    if step.name in BESIDE:
        other = BESIDE[step.name]
        yield _mask(
            step,
            f"with {SIGNS[other]} in place of {sign}",
            _other(other),
            f"the condition (mask, bound) `{step.source.text}` is off by one: {SIGNS[other]} in"
            f" place of {sign}",
        )
        for shift in (1, -1):
            yield _mask(
                step,
                f"with a bound {abs(shift)} {'higher' if shift > 0 else 'lower'}",
                lambda f, a, k, s=shift: f(a[0], a[1] + s, *a[2:], **k),
                f"the bound of the condition (mask, window) `{step.source.text}` is off by one",
            )
    opposite = OPPOSITE[step.name]
    yield _mask(
        step,
        f"with {SIGNS[opposite]} in place of {sign}",
        _other(opposite),
        f"the condition (mask) `{step.source.text}` is inverted",
    )
    yield _mask(
        step,
        "with the condition always true",
        lambda f, a, k: torch.ones_like(f(*a, **k)),
        f"the condition (mask, bound) `{step.source.text}` is missing: taken as always true",
    )
    yield _mask(
        step,
        "with the condition always false",
        lambda f, a, k: torch.zeros_like(f(*a, **k)),
        f"the condition `{step.source.text}` is never true, its branch is missing",
    )


def _rounded_bounds(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """A bound of whole tiles: the last one, of which a part counts, is kept or dropped whole."""
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *TILES)):
        for keeps, said, direction in (
            (True, "read to its end (whole), beyond the bound (length)", "up"),
            (False, "left out", "down"),
        ):
            yield _mask(
                step,
                f"with the bound rounded {direction} to whole tiles of {tile}",
                _of_tiles(step.name, tile, keeps),
                f"the last, partial tile (page, block) of {tile} is {said}: the bound of the"
                f" condition (mask) `{step.source.text}` is rounded {direction}",
            )


def _whole_tiles(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """A condition of two places that is checked for whole tiles of columns or rows only."""
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *TILES)):
        for height, width, what in ((1, tile, "columns (keys)"), (tile, 1, "rows (queries)")):
            for holds, said in ((True, "everywhere"), (False, "anywhere")):
                yield _mask(
                    step,
                    f"for whole tiles of {tile} {what}, where it holds {said} in one,",
                    _in_whole(height, width, holds),
                    f"the condition (mask, window) `{step.source.text}` is checked for whole tiles"
                    f" of {tile} {what} only, not for each element of the tile that it cuts",
                )


def _in_whole(height: int, width: int, holds: bool) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        right = func(*args, **kwargs)
        if right.dim() < 2 or right.shape[-2] < 2 or right.shape[-1] < 2:
            raise ValueError("no tiles")
        if holds:
            return ~any_in_tile(~right, height, width)
        return any_in_tile(right, height, width)

    return instead


def _of_tiles(name: str, tile: int, keeps: bool) -> Instead:
    """`place < bound` and its like with the number of tiles in place of that of elements; what is
    below the bound counts.
    """
    has_end = name in ("le", "gt")  # the bound is the last one that counts

    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        place, bound = args[:2]
        if any(isinstance(one, torch.Tensor) and one.is_floating_point() for one in (place, bound)):
            return func(*args, **kwargs)
        end = bound + 1 if has_end else bound
        count = (end + tile - 1) // tile if keeps else end // tile
        below = place // tile < count
        return below if name in ("lt", "le") else ~below

    return instead


def _other(name: str) -> Instead:
    compare = getattr(torch, name)
    return lambda _f, args, _k: compare(*args)


def _joined(step: ReferenceStep) -> Iterator[ChangedStep]:
    for number in (0, 1):
        missing = step.operand(1 - number) or ("the second", "the first")[number]
        yield _mask(
            step,
            f"without the condition {missing}",
            lambda f, a, k, n=number: _alone(f, a, k, n),
            f"the condition (mask) {missing} is missing, not checked",
        )
    other = torch.bitwise_or if step.name in ALL_OF else torch.bitwise_and
    yield _mask(
        step,
        f"with {'or in place of and' if step.name in ALL_OF else 'and in place of or'}",
        lambda f, a, k: other(a[0], a[1]),
        f"the conditions are joined by {'or' if step.name in ALL_OF else 'and'}, not by"
        f" {'and' if step.name in ALL_OF else 'or'}",
    )


def _alone(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], number: int) -> Any:
    return args[number].expand_as(func(*args, **kwargs)).clone()


def _chosen(step: ReferenceStep) -> Iterator[ChangedStep]:
    """Least in place of largest; of equal values another one."""
    if step.name in ("argmax", "argmin"):
        other = torch.argmin if step.name == "argmax" else torch.argmax
        yield change(
            step,
            f"with {other.__name__} in place of {step.name} in {step.words}",
            lambda f, a, k: other(*a, **k),
            mistake=f"{other.__name__} is taken in place of {step.name}",
        )
        yield change(
            step,
            f"with the last of equal values in {step.words}",
            _last_of_equal,
            mistake="of equal values (ties) the last one is taken in place of the first",
        )
        return
    name = "largest" if step.name in ("topk", "kthvalue") else "descending"
    usual = name == "largest"
    yield change(
        step,
        f"in the opposite order in {step.words}",
        lambda f, a, k: f(*a, **{**k, name: not k.get(name, usual)}),
        mistake="the order is reversed: ascending and descending, smallest and largest exchanged",
    )


def _last_of_equal(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if axis is None:
        raise ValueError("of all elements")
    rest = {key: value for key, value in kwargs.items() if key != "dim"}
    return args[0].shape[axis] - 1 - func(args[0].flip(axis), axis, *args[2:], **rest)
