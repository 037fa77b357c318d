"""Scans whose parts are joined wrongly: without the carry, or with that of one part alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_operations import scan_axis
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

PARTS = (32, 64, 128, 256, 512, 1024, 8, 16)


def joined_scans(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """A running sum in parts, as warps and blocks compute it."""
    if step.name != "cumsum":
        return
    for size in dict.fromkeys((*tiles, *PARTS)):
        yield change(
            step,
            f"begun again every {size} in {step.words}",
            _parted(size, carried=0),
            1.01,
            f"the carry is missing: the scan begins again every {size} elements",
        )
        yield change(
            step,
            f"with the sum of the previous {size} alone carried on in {step.words}",
            _parted(size, carried=1),
            1.01,
            f"the carry holds the previous part of {size} alone, not all parts before",
        )


def _parted(size: int, carried: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = scan_axis(args, kwargs)
        parts = args[0].split(size, axis)
        if len(parts) < 2:
            return func(*args, **kwargs)
        found = []
        for number, part in enumerate(parts):
            begin = parts[number - 1].sum(axis, keepdim=True) if carried and number else 0.0
            found.append(part.cumsum(axis) + begin)
        return torch.cat(found, axis)

    return instead
