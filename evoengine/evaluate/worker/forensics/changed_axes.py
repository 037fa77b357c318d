"""Reductions over other axes than those that are meant, or over a part of one of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from evoengine.evaluate.worker.forensics.changed_reductions import groups_of, names_of, together
from evoengine.evaluate.worker.forensics.changed_step import (
    ChangedStep,
    Instead,
    reduced_axes,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

KNOWN = {"mean", "sum", "amax", "amin", "var", "std"}


def changed_axes(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """All reductions together where there are several, then each by itself."""
    for group in groups_of(steps):
        names, are = names_of(group), "are" if len(group) > 1 else "is"
        for which, said in (
            ("next", "along the other axis (over columns in place of rows, or the reverse)"),
            ("more", "over the first axis (all rows, the whole batch) as well, not for each alone"),
            ("last", "along the last of their axes alone, not over all of them"),
        ):
            yield replace(
                together(
                    group,
                    f"with {names} taken {said}",
                    _along_others(which),
                    f"{names} {are} taken {said}",
                ),
                of_whole=True,
            )
        has_mean = any(step.name == "mean" for step in group)  # else there is one way to divide
        for axis, kept, words in _parts():
            for is_own in (False, True) if has_mean else (False,):
                divided = ", and divided by their number" if is_own else ""
                yield replace(
                    together(
                        group,
                        f"with {names} of {words}{divided}",
                        _of_part(axis, kept, is_own),
                        f"{names} {are} taken of {words}: the others are missing",
                    ),
                    of_whole=True,
                )


def _parts() -> Iterator[tuple[int, slice, str]]:
    """The axis among those that are reduced, what is kept of it, and that in words."""
    for axis, named in ((0, "first"), (-1, "last")):
        said = f"along the {named} of the axes that are summed"
        yield axis, slice(0, 1), f"the first index alone {said} (one row, plane or batch)"
        yield axis, slice(0, -1), f"all but the last index {said} (off by one)"
        yield axis, slice(1, None), f"all but the first index {said}"


def _along_others(which: str) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, axes = args[0], sorted(reduced_axes(args, kwargs))
        if func.__name__ not in KNOWN or not axes:
            raise ValueError("not a plain reduction")
        right = func(*args, **kwargs)
        if which == "next":
            others = {value.dim() - 1: value.dim() - 2, value.dim() - 2: value.dim() - 1}
            chosen = [others[axis] for axis in axes if axis in others and value.dim() > 1]
        elif which == "more":
            chosen = sorted({0, *axes})
        else:
            chosen = axes[-1:]
        if chosen == axes or not chosen:
            raise ValueError("no change")
        named = {key: one for key, one in kwargs.items() if key not in ("dim", "axis")}
        keeps = len(right.shape) == value.dim()
        found = func(value, dim=chosen, **{**named, "keepdim": keeps or which == "more"})
        if not keeps and which == "more":
            found = found.squeeze(axes).expand(right.shape)
        if not keeps and found.shape != right.shape:
            raise ValueError("another shape")
        return found

    return instead


def _of_part(axis: int, kept: slice, is_own: bool) -> Instead:
    """A reduction over some indices of one of several axes."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, axes = args[0], sorted(reduced_axes(args, kwargs))
        if func.__name__ not in KNOWN or len(axes) < 2:
            raise ValueError("not a reduction over several axes")
        extent = value.shape[axes[axis]]
        chosen = range(extent)[kept]
        if extent < 2 or not chosen:
            raise ValueError("one index")
        part = value.narrow(axes[axis], chosen.start, len(chosen))
        found = func(part, *args[1:], **kwargs)
        return found * (len(chosen) / extent) if func.__name__ == "mean" and not is_own else found

    return instead
