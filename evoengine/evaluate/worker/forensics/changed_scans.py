"""Scans whose parts are joined wrongly, or that lack a step inside of a warp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from evoengine.evaluate.worker.forensics.changed_operations import scan_axis
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

PARTS = (32, 64, 128, 256, 512, 1024, 8, 16)
WARP = 32
LANE_STEPS = (16, 8, 4, 2, 1)
ITEMS = (1, 2, 4, 8)  # elements of one thread


def joined_scans(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """A running sum in parts, as warps and blocks compute it."""
    if step.name != "cumsum":
        return
    sizes = list(dict.fromkeys((*tiles, *PARTS)))
    for size in sizes:
        named = f"{size} elements{' (of each warp)' if size == WARP else ''}"
        yield change(
            step,
            f"begun again every {size} in {step.words}",
            _parted(size, carried=0),
            1.01,
            f"the carry is missing: the scan begins again every {named}",
        )
        yield change(
            step,
            f"with the sum of the previous {size} alone carried on in {step.words}",
            _parted(size, carried=1),
            1.01,
            f"the carry holds the total of the previous part of {named} alone, not of all parts"
            " before",
        )
    yield from _carried_in_part(step, sizes)
    for size in sizes:
        for inner in (one for one in sizes if one < size and size % one == 0):
            named = f"{inner} elements{', as the warps of a block' if inner == WARP else ''}"
            yield change(
                step,
                f"with the sum of the previous {inner} alone carried on inside every {size} in"
                f" {step.words}",
                _parted_twice(size, inner, carried=1),
                1.0,
                f"inside a tile of {size}, each part of {named}, adds the total of the part (the"
                " warp) before it alone, not of all parts before",
            )
            yield change(
                step,
                f"begun again every {inner} inside every {size} in {step.words}",
                _parted_twice(size, inner, carried=0),
                1.0,
                f"inside a tile of {size}, parts of {named}, do not add the totals of the parts"
                " (warps) before them",
            )
    yield from _inside_warps(step)


def _carried_in_part(step: ReferenceStep, sizes: Sequence[int]) -> Iterator[ChangedStep]:
    for size in sizes:
        for lost in (one for one in (WARP, 1, *sizes) if one < size and size % one == 0):
            last = f"the last {lost} elements" if lost > 1 else "the last element"
            warp = " (the last warp)" if lost == WARP else ""
            yield change(
                step,
                f"where what is carried over every {size} lacks {last} of them in {step.words}",
                _with_carry(size, slice(0, -lost)),
                1.0,
                f"the carry to the next tile (chunk) of {size} leaves out {last}{warp} of each",
            )
            yield change(
                step,
                f"where what is carried over every {size} is of {last} of them in {step.words}",
                _with_carry(size, slice(-lost, None)),
                1.0,
                f"the carry to the next tile (chunk) of {size} has {last}{warp} of each only",
            )


def _inside_warps(step: ReferenceStep) -> Iterator[ChangedStep]:
    for items in ITEMS:
        for missing in LANE_STEPS:
            which = {16: "last step", 1: "first step"}.get(missing, "step")
            for right_totals in (False, True):
                totals = "right totals of the warps" if right_totals else "totals of the same scan"
                yield change(
                    step,
                    f"with scans of 32 lanes of {items} without the step of {missing} lanes, and"
                    f" {totals}, in {step.words}",
                    _without_step(items, missing, right_totals),
                    1.0,
                    f"the {which} of the scan of a warp, that of {missing} lanes, is missing: too"
                    " few of the 32 lanes are summed",
                )


def _parted(size: int, carried: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = scan_axis(args, kwargs)
        parts = args[0].split(size, axis)
        if len(parts) < 2:
            return func(*args, **kwargs)
        return _joined(parts, axis, carried)

    return instead


def _with_carry(size: int, taken: slice) -> Instead:
    """Tiles of `size`, of each of which a part is carried over."""

    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = scan_axis(args, kwargs)
        parts = args[0].movedim(axis, -1).split(size, -1)
        if len(parts) < 2:
            raise ValueError("one tile")
        begin: Any = 0.0
        found = []
        for part in parts:
            found.append(part.cumsum(-1) + begin)
            begin = begin + part[..., taken].sum(-1, keepdim=True)
        return torch.cat(found, -1).movedim(-1, axis)

    return instead


def _joined(parts: Sequence[torch.Tensor], axis: int, carried: int) -> torch.Tensor:
    """Scans of parts, each with so many of the parts before it added."""
    found = []
    for number, part in enumerate(parts):
        begin = parts[number - 1].sum(axis, keepdim=True) if carried and number else 0.0
        found.append(part.cumsum(axis) + begin)
    return torch.cat(found, axis)


def _parted_twice(size: int, inner: int, carried: int) -> Instead:
    """Tiles that are joined rightly, of parts that are not."""

    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = scan_axis(args, kwargs)
        if args[0].shape[axis] <= 2 * inner:
            raise ValueError("two parts")
        begin: Any = 0.0
        found = []
        for tile in args[0].split(size, axis):
            found.append(_joined(tile.split(inner, axis), axis, carried) + begin)
            begin = begin + tile.sum(axis, keepdim=True)
        return torch.cat(found, axis)

    return instead


def _without_step(items: int, missing: int, right_totals: bool) -> Instead:
    """Warps that scan the sums of their lanes, of `items` elements each, by Hillis and Steele's
    steps but one; totals of warps are their last lane's.
    """

    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = scan_axis(args, kwargs)
        value = args[0].movedim(axis, -1)
        extent, part = value.shape[-1], WARP * items
        whole = pad(value, (0, -extent % part)).unflatten(-1, (-1, WARP, items))
        local = whole.cumsum(-1)
        own = local[..., -1]
        lanes = own
        for step in sorted(LANE_STEPS):
            if step != missing:
                lanes = lanes + pad(lanes, (step, 0))[..., :WARP]
        totals = own.sum(-1) if right_totals else lanes[..., -1]
        before = (totals.cumsum(-1) - totals)[..., None, None]
        found = local + (lanes - own)[..., None] + before
        return found.flatten(-3)[..., :extent].movedim(-1, axis)

    return instead
