"""Filters that are written out as a loop over taps, in tiles whose halo is missing or too short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import MOST_TILES, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import Place, ReferenceStep
from evoengine.records import DiagnosisKind

TILES = (32, 64, 16, 128, 256, 8)


def short_halos(steps: Sequence[ReferenceStep], tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Products with views of a padded tensor: of each tap, elements of another tile are zeros."""
    products = [step for step in steps if step.name == "mul"]
    for pad in steps:
        if pad.name != "pad":
            continue
        taps = [step for step in products if step.order > pad.order]
        for tile in dict.fromkeys((*tiles[:MOST_TILES], *TILES)) if taps else ():
            for side, which in ((1, "before"), (-1, "behind")):
                for kept, how in ((0, "is missing"), (1, "is one column too short")):
                    lost = "all" if kept == 0 else "the farthest"
                    yield ChangedStep(
                        DiagnosisKind.changed_step,
                        f"with zeros for {lost} of the elements {which} every tile of {tile} after"
                        f" {pad.words}",
                        _changes(pad, taps, tile, side, kept),
                        1.0,
                        mistake=f"the halo {which} every tile of {tile} {how}: {lost} of the"
                        f" elements that a window needs of the tile {which} it are taken as zeros",
                    )


def _changes(
    pad: ReferenceStep, taps: Sequence[ReferenceStep], tile: int, side: int, kept: int
) -> dict[Place, Instead]:
    held: list[Any] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        amounts = args[1] if len(args) > 1 else kwargs["pad"]
        held[:] = [found, amounts[0], amounts[1]]
        return found

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = [_cut(one, held, tile, side, kept) for one in args]
        return func(*given, **kwargs)

    return {pad.place: hold, **{step.place: use for step in taps}}


def _cut(value: Any, held: Sequence[Any], tile: int, side: int, kept: int) -> Any:
    """A view of the padded tensor without what lies in another tile than the own place."""
    if not held or not isinstance(value, torch.Tensor) or not value.dim():
        return value
    padded, left, right = held
    if value.untyped_storage().data_ptr() != padded.untyped_storage().data_ptr():
        return value
    extent = value.shape[-1]
    if value.stride(-1) != padded.stride(-1) or extent != padded.shape[-1] - left - right:
        raise ValueError("not one element for each")
    first = (value.storage_offset() - padded.storage_offset()) // padded.stride(-1)
    at = torch.arange(extent, device=value.device)
    source = at + first % padded.shape[-1] - left
    start = at // tile * tile
    # of a halo that is short by one, only the farthest column is missing
    if side > 0:
        hidden = source < start - max(0, left - 1) * kept
    else:
        hidden = source >= start + tile + max(0, right - 1) * kept
    return value.masked_fill(hidden, 0)
