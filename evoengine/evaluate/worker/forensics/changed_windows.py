"""Convolutions with a wrong border: other padding, shifted windows, tiles without their halo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from evoengine.evaluate.worker.forensics.changed_pools import changed_pools
from evoengine.evaluate.worker.forensics.changed_reductions import all_and_each, together
from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

HALO_TILES = (32, 64, 128, 256, 16, 8)
MOST_HALO = 4
DILATED = {"conv1d", "conv2d"}  # functions whose windows have holes


def changed_windows(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that pads, or takes windows."""
    if step.name == "pad":
        yield from _borders(step)
    if step.name == "avg_pool2d":
        yield from changed_pools(step)
    if step.name == "unfold":
        yield from _halos(step, tiles)
        yield from _walks(step, tiles)
        for which, lost, again in (("last", -1, -2), ("first", 0, 1)):
            yield change(
                step,
                f"without the {which} tap of every window in {step.words}",
                _without_tap(lost, again),
                0.99,
                f"the {which} row or column of every window (its {which} tap) is left out (off by"
                " one)",
            )


def _without_tap(lost: int, again: int) -> Instead:
    """Windows that have one tap twice, for a maximum, in place of another."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        if found.shape[-1] < 2:
            raise ValueError("one tap")
        made = found.clone()
        made[..., lost] = found[..., again]
        return made

    return instead


def undilated(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """Convolutions whose taps lie side by side, and not apart, along all axes or one."""
    taps = [step for step in steps if step.name == "index_select" and step.function in DILATED]
    for group in all_and_each(taps) if taps else ():
        for start, where in (
            ("middle", ", around the same middle"),
            ("first", ", from the same start"),
            ("last", ", up to the same end"),
        ):
            yield together(
                group,
                f"with the taps of a window side by side{where}",
                _side_by_side(start),
                f"the dilation is ignored: taps lie side by side (dilation 1){where}",
                1.01,
            )


def _side_by_side(kept: str) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, axis, index = args
        spare = value.shape[axis] - len(index)
        begin = {"first": 0, "middle": spare // 2, "last": spare}[kept]
        at = torch.arange(len(index), device=value.device) + begin
        return func(value, axis, at, **kwargs)

    return instead


def _borders(step: ReferenceStep) -> Iterator[ChangedStep]:
    for mode, mistake in (
        ("replicate", "the padding repeats the edge (clamped indices) in place of zeros"),
        ("reflect", "the padding mirrors the elements at the edge in place of zeros"),
        ("circular", "the padding wraps around to the other end in place of zeros"),
    ):
        yield change(
            step,
            f"with {mode} padding in {step.words}",
            lambda f, a, k, m=mode: pad(a[0], _amounts(a, k), mode=m),
            1.02,
            mistake,
        )
    yield change(
        step,
        f"with elements of the neighbouring row in place of the padding in {step.words}",
        _wrapped,
        1.02,
        "the bounds of columns are not checked: at the left and right edge the window wraps into"
        " the row before or after (no zero padding there)",
    )
    yield ChangedStep(
        DiagnosisKind.changed_step,
        f"with elements of the channel or batch before in place of the padding in {step.words}",
        {step.place: _wrapped_anywhere},
        1.02,
        mistake="the border of a row is not checked: the window wraps into the end of the row"
        " (channel, sequence) before or the start of the one behind, in place of zeros",
        of_whole=True,
    )
    for axes, which in (
        ((0,), "last axis"),
        ((1,), "last but one axis"),
        ((0, 1), "last two axes"),
    ):
        for shift in (1, -1, 2, -2, 3, -3):
            side = "ahead (later, into the future)" if shift > 0 else "behind (earlier)"
            yield change(
                step,
                f"with windows {abs(shift)} {side} along the {which} in {step.words}",
                _shifted(axes, shift),
                1.0,
                f"the window is shifted by {abs(shift)} {side} along the {which}",
            )


def _amounts(args: tuple[Any, ...], kwargs: Any) -> tuple[int, ...]:
    return tuple(args[1] if len(args) > 1 else kwargs["pad"])


def _wrapped(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    value, amounts = args[0], _amounts(args, kwargs)
    if value.dim() < 2 or max(amounts[:2]) < 1:
        raise ValueError("no row to wrap into")
    tall = pad(value, (0, 0, *amounts[2:]))
    rows, columns = tall.shape[-2:]
    row = torch.arange(rows, device=value.device).view(-1, 1)
    column = torch.arange(-amounts[0], columns + amounts[1], device=value.device)
    places = (row * columns + column).clamp(0, rows * columns - 1)
    return tall.flatten(-2)[..., places]


def _wrapped_anywhere(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Padding of the last axis alone that holds what lies there in memory, zeros outside of all."""
    value, amounts = args[0], _amounts(args, kwargs)
    if value.dim() < 2 or max(amounts[:2]) < 1 or any(amounts[2:]):
        raise ValueError("not padded along rows alone")
    columns = value.shape[-1]
    before, behind = amounts[0], amounts[1]
    flat = pad(value.flatten(), (max(0, before), max(0, behind)))
    rows = value.numel() // columns
    row = torch.arange(rows, device=value.device).view(-1, 1) * columns
    places = row + torch.arange(before + columns + behind, device=value.device)
    return flat[places].view(*value.shape[:-1], -1)


def _shifted(axes: Sequence[int], shift: int) -> Instead:
    """As many elements less before each axis as there are more behind it."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        amounts = list(_amounts(args, kwargs))
        if len(amounts) <= 2 * axes[-1] + 1:
            raise ValueError("no padding of this axis")
        for axis in axes:
            amounts[2 * axis] -= shift
            amounts[2 * axis + 1] += shift
        return pad(args[0], tuple(amounts), value=kwargs.get("value"))

    return instead


def changed_strides(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """Windows that begin at other distances than the stride: along all axes, then along each."""
    taken = [step for step in steps if step.name == "unfold"]
    groups = [taken, *([one] for one in taken if len(taken) > 1)] if taken else []
    for group in groups:
        for words, stride in (("1 in place of the stride", 1), ("the size of a window", 0)):
            yield ChangedStep(
                DiagnosisKind.changed_step,
                f"with windows {words} apart in {group[0].words}",
                {step.place: _apart(stride) for step in group},
                1.0,
                mistake=f"the stride of the windows is missing or wrong: they begin {words} apart",
            )


def _apart(stride: int) -> Instead:
    """Windows so far apart, as many as there are; 0: without overlap."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        axis, size, own = int(args[1]), int(args[2]), int(args[3]) if len(args) > 3 else 1
        other = stride or size
        count = right.shape[axis]
        if other == own or (count - 1) * other + size > args[0].shape[axis]:
            raise ValueError("no change, or beyond the end")
        return args[0].unfold(axis, size, other).narrow(axis, 0, count)

    return instead


def _halos(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *HALO_TILES)):
        for left in range(MOST_HALO):
            for before, behind, which in (
                (True, False, "before"),
                (False, True, "behind"),
                (True, True, "around"),
            ):
                yield change(
                    step,
                    f"with zeros {which} every tile of {tile} in {step.words}",
                    _without_halo(tile, left, before, behind),
                    1.0,
                    f"the halo {which} every tile of {tile} is missing: elements of the"
                    f" {'next' if which == 'behind' else 'previous'} tile are taken as zeros at the"
                    " boundary of the tile",
                )


def _without_halo(tile: int, left: int, before: bool, behind: bool) -> Instead:
    """Windows along one axis that see only elements of their own tile; `left` of padding."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        axis, size, stride = int(args[1]), int(args[2]), int(args[3]) if len(args) > 3 else 1
        count = found.shape[axis]
        if count <= tile or left >= size:
            raise ValueError("one tile")
        start = torch.arange(count, device=found.device).view(-1, 1) // tile * tile * stride
        at = torch.arange(count, device=found.device).view(-1, 1) * stride
        at = at - left + torch.arange(size, device=found.device)
        hidden = (at < start) if before else torch.zeros_like(at, dtype=torch.bool)
        if behind:
            hidden = hidden | (at >= start + tile * stride)
        if not bool(hidden.any()):
            raise ValueError("no change")
        view = [1] * found.dim()
        view[axis], view[-1] = count, size
        return found.masked_fill(hidden.view(view), 0)

    return instead


def _walks(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """Windows in registers that move along a stretch, filled at its start from the wrong place."""
    for tile in dict.fromkeys((*tiles[:MOST_TILES], *HALO_TILES)):
        for shift in (1, -1):
            far = "too far ahead (late)" if shift > 0 else "too far back (early)"
            yield change(
                step,
                f"with the window filled {far} by one at the start of every stretch of {tile} in"
                f" {step.words}",
                _filled_wrongly(tile, shift),
                1.0,
                f"the window is filled one place {far} at the start of every stretch of {tile} that"
                " it walks along: until it has moved on, its first places are shifted by one to"
                " their neighbours",
            )
        yield change(
            step,
            f"with zeros in the window at the start of every stretch of {tile} in {step.words}",
            _filled_wrongly(tile, 0),
            1.0,
            f"the window is not filled (zeros) at the start of every stretch of {tile} that it"
            " walks along",
        )


def _filled_wrongly(tile: int, shift: int) -> Instead:
    """What a window has at its start stands `shift` places further; 0: it is zero."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        value = args[0]
        axis, size, stride = int(args[1]), int(args[2]), int(args[3]) if len(args) > 3 else 1
        count = found.shape[axis]
        if count <= tile or stride != 1:
            raise ValueError("one stretch")
        at = torch.arange(count, device=found.device).view(-1, 1)
        inside = torch.arange(size, device=found.device)
        early = inside < size - 1 - at % tile
        view = [1] * found.dim()
        view[axis], view[-1] = count, size
        if shift == 0:
            return found.masked_fill(early.view(view), 0)
        places = (at + inside + shift).clamp(0, value.shape[axis] - 1).flatten()
        moved = value.index_select(axis, places).unflatten(axis, (count, size))
        moved = moved.movedim(axis + 1 if axis >= 0 else axis, -1)
        return torch.where(early.view(view), moved, found)

    return instead
