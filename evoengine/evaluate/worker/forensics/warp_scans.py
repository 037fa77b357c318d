"""Scans whose steps between the lanes of a warp, or the threads of a block, go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.nn.functional import pad

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.scan_kinds import ScanKind, scanned

WARP = 32
LANE_STEPS = (16, 8, 4, 2, 1)
ITEMS = (1, 2, 4, 8)  # elements of one thread
MOST_THREADS = 1024

# (lanes, step, kind) -> lanes after the step
LaneStep = Callable[[torch.Tensor, int, ScanKind], torch.Tensor]


def warp_scans(step: ReferenceStep, kind: ScanKind, sizes: Sequence[int]) -> Iterator[ChangedStep]:
    """A step of a warp's scan missing, or done without its condition."""
    yield from _wrong_guards(step, kind, sizes)
    for items in ITEMS:
        for missing in LANE_STEPS:
            which = {16: "last step", 1: "first step"}.get(missing, "step")
            for right_totals in (False, True):
                totals = "right totals of the warps" if right_totals else "totals of the same scan"
                yield change(
                    step,
                    f"with scans of 32 lanes of {items} without the step of {missing} lanes, and"
                    f" {totals}, in {step.words}",
                    _stepped(kind, items, WARP, _without(missing), right_totals),
                    1.0,
                    f"the {which} of the scan of a warp, that of {missing} lanes, is missing: too"
                    " few of the 32 lanes are summed",
                )


def _wrong_guards(
    step: ReferenceStep, kind: ScanKind, sizes: Sequence[int]
) -> Iterator[ChangedStep]:
    widths = [WARP, *(one for one in sizes if WARP < one <= MOST_THREADS and one % WARP == 0)]
    for lane_step, words, mistake in (
        (
            _unguarded,
            "in which lanes before the first join themselves",
            "the condition of a step is missing (lane >= step): lanes that have no lane so far"
            " before them join their own value again, which counts twice, as a shuffle up gives"
            " them back their own",
        ),
        (
            _strictly_guarded,
            "in which the lane at the distance of a step joins nothing",
            "the condition of a step is off by one (lane > step, not lane >= step): the lane at"
            " exactly that distance misses the first lane's value",
        ),
        (
            _wrapped,
            "in which lanes before the first join the last ones",
            "the condition of a step is missing (lane >= step): lanes that have no lane so far"
            " before them join those at the end of the warp, as an index that wraps around",
        ),
        (
            _backwards,
            "from the other end",
            "the scan runs in the reverse direction inside of each warp: lanes take from those"
            " behind them (a shuffle down), not before them (up)",
        ),
    ):
        for width in widths:
            named = f"the {WARP} lanes of a warp" if width == WARP else f"{width} threads"
            for items in ITEMS if width == WARP else (1,):
                each = f", {items} elements each," if items > 1 else ""
                yield change(
                    step,
                    f"with scans over {named}{each} {words} in {step.words}",
                    _stepped(kind, items, width, lane_step, lane_step is _backwards),
                    1.0,
                    f"in the scan over {named}{each} {mistake}",
                )


def _without(missing: int) -> LaneStep:
    def lane_step(lanes: torch.Tensor, step: int, kind: ScanKind) -> torch.Tensor:
        return lanes if step == missing else kind.join(kind.shifted(lanes, step), lanes)

    return lane_step


def _unguarded(lanes: torch.Tensor, step: int, kind: ScanKind) -> torch.Tensor:
    before = torch.cat([lanes[..., :step], lanes[..., :-step]], -1)
    return kind.join(before, lanes)


def _strictly_guarded(lanes: torch.Tensor, step: int, kind: ScanKind) -> torch.Tensor:
    joined = kind.join(kind.shifted(lanes, step), lanes)
    at = torch.arange(lanes.shape[-1], device=lanes.device)
    return torch.where(at > step, joined, lanes)


def _wrapped(lanes: torch.Tensor, step: int, kind: ScanKind) -> torch.Tensor:
    return kind.join(lanes.roll(step, -1), lanes)


def _backwards(lanes: torch.Tensor, step: int, kind: ScanKind) -> torch.Tensor:
    return kind.join(lanes, kind.shifted(lanes.flip(-1), step).flip(-1))


def _stepped(
    kind: ScanKind, items: int, width: int, lane_step: LaneStep, right_totals: bool
) -> Instead:
    """Warps that scan the totals of their lanes, of `items` elements each, by Hillis and Steele's
    steps; totals of warps are their last lane's.
    """

    def along(value: torch.Tensor) -> torch.Tensor:
        extent = value.shape[-1]
        if width > WARP and extent <= WARP:
            raise ValueError("one warp")
        filled = pad(value, (0, -extent % (width * items)), value=kind.empty)
        whole = filled.unflatten(-1, (-1, width, items))
        own = kind.total(whole)
        lanes, step = own, 1
        while step < width:
            lanes = lane_step(lanes, step, kind)
            step *= 2
        totals = kind.total(own) if right_totals else lanes[..., -1]
        before = kind.shifted(kind.scan(totals), 1)[..., None, None]
        if items == 1:
            inside = lanes.unsqueeze(-1)
        elif kind.name == "cumsum":
            inside = kind.scan(whole) + (lanes - own).unsqueeze(-1)
        else:
            inside = kind.join(kind.shifted(lanes, 1).unsqueeze(-1), kind.scan(whole))
        return kind.join(before, inside).flatten(-3)[..., :extent]

    return scanned(along)
