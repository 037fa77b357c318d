"""Means of windows that are divided by another number of places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import pad

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.written_out_windows import counted_places, pair


def changed_pools(step: ReferenceStep) -> Iterator[ChangedStep]:
    """The changes of an average pool."""
    divisor = "the divisor (count of a window's places) of the mean"
    whole, inside = (False,) * 4, (True,) * 4
    yield change(
        step,
        f"where the padding does not count in the divisor of {step.words}",
        _divided(inside, if_padding_counts=True),
        1.02,
        f"{divisor} leaves out the padding outside of the image, which must count: the flag is"
        " ignored or inverted",
    )
    yield change(
        step,
        f"where the padding counts in the divisor of {step.words}",
        _divided(whole, if_padding_counts=False),
        1.02,
        f"{divisor} counts the padding outside of the image, which must not count (the whole"
        " window, KERNEL x KERNEL): the flag is ignored or inverted",
    )
    for number, edge in enumerate(("above", "below", "left of", "right of")):
        yield change(
            step,
            f"where places {edge} the image (padding) count in the divisor of {step.words}",
            _divided(tuple(at != number for at in range(4)), if_padding_counts=False),
            1.02,
            f"{divisor} counts places {edge} the image, in the padding beyond that edge: it is not"
            " clamped (limited) there",
        )
    for axis, which in ((0, "rows"), (1, "columns")):
        yield change(
            step,
            f"where padded {which} count in the divisor of {step.words}",
            _divided(tuple(at // 2 != axis for at in range(4)), if_padding_counts=False),
            1.02,
            f"{divisor} counts padded {which} (outside of the image, the whole window) along that"
            " axis, though not along the other",
        )
        yield change(
            step,
            f"divided by the {which} of a window alone in {step.words}",
            _divided(inside, axis=axis),
            1.01,
            f"{divisor} is the number of a window's {which} alone, not of its places (area)",
        )
    yield change(
        step,
        f"not divided in {step.words}",
        lambda f, a, k: _windows(a, k)[0].flatten(-2).sum(-1),
        1.01,
        "the sum of a window is not divided by the number of its places (it is no mean)",
    )


def _divided(
    clamped: tuple[bool, ...], if_padding_counts: bool | None = None, axis: int | None = None
) -> Instead:
    """Sums of windows by the number of their places, or of their rows or columns alone; for pools
    in which padding counts, or does not, where that is said.
    """

    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        windows, steps, paddings = _windows(args, kwargs)
        counts_padding = bool(kwargs.get("count_include_pad", args[5] if len(args) > 5 else True))
        if if_padding_counts is not None and counts_padding != if_padding_counts:
            raise ValueError("another flag")
        sums = windows.flatten(-2).sum(-1)
        sizes, extents = list(windows.shape[-2:]), list(args[0].shape[-2:])
        starts = [
            [at * steps[one] - paddings[one] for at in range(sums.shape[one - 2])] for one in (0, 1)
        ]
        if axis is not None:
            other = 1 - axis
            starts[other], sizes[other] = [0] * len(starts[other]), 1
        made = counted_places(
            (starts[0], starts[1]), (sizes[0], sizes[1]), (extents[0], extents[1]), clamped
        )
        return sums / torch.tensor(made, dtype=sums.dtype, device=sums.device)

    return instead


def _windows(
    args: tuple[Any, ...], kwargs: Any
) -> tuple[torch.Tensor, tuple[int, ...], tuple[int, ...]]:
    """The windows of a pool, the steps between them and the padding."""
    names = ("input", "kernel_size", "stride", "padding", "ceil_mode")
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    size = pair(given["kernel_size"])
    step = pair(given.get("stride") or given["kernel_size"])
    padding = pair(given.get("padding", 0))
    if given.get("ceil_mode"):
        raise ValueError("windows that begin beyond the end")
    padded = pad(given["input"], (padding[1], padding[1], padding[0], padding[0]))
    return padded.unfold(-2, size[0], step[0]).unfold(-2, size[1], step[1]), step, padding
