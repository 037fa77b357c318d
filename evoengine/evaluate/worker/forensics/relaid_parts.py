"""Partial results that are written to scratch in one layout and read in another.

A kernel cuts a sum, a product or an attention into parts (splits), and a second launch joins the
parts of each row. Where its index has another order of split, plane and row, it joins parts of
other rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    ChangedStep,
    Instead,
    Rehearsal,
    is_last_axis,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

SPLITS = (2, 4)  # where the plan names none
MOST_SPLITS = 64
NAMES = ("split", "plane (head)", "row")
Order = tuple[int, ...]
MOST_NUMBERS = 3
# as written and as read, the slowest axis first; the likelier ones first
ORDERS: tuple[tuple[Order, Order], ...] = (
    ((0, 1, 2), (1, 2, 0)),
    ((1, 2, 0), (0, 1, 2)),
    ((0, 1, 2), (1, 0, 2)),
    ((1, 0, 2), (0, 1, 2)),
    ((1, 0, 2), (1, 2, 0)),
    ((0, 1, 2), (0, 2, 1)),
)
Parts = tuple[torch.Tensor, ...]  # (split, plane, row, ...) each
Calls = Sequence[tuple[Any, ...]]  # what a step is given by each of its calls


def relaid_parts(steps: Sequence[ReferenceStep], tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of every sum, product and attention that may be computed in parts."""
    splits = [one for one in tiles if one <= MOST_SPLITS][:MOST_NUMBERS] or SPLITS
    before: ReferenceStep | None = None
    for step in steps:
        if step.name == "softmax":
            before = step
        elif step.name == "matmul":
            yield from _of(step, before, splits, _parts_of_product)
            before = None
        elif step.name in ("sum", "mean"):
            yield from _of(step, None, splits, _parts_of_sum)


def _of(
    step: ReferenceStep,
    softmax: ReferenceStep | None,
    splits: Sequence[int],
    parts_of: Callable[[Calls, int], Parts],
) -> Iterator[ChangedStep]:
    seen = _Seen()
    rehearsal = Rehearsal({step.place: seen.note})
    if softmax is not None:
        rehearsal = Rehearsal({softmax.place: seen.note_scores, step.place: seen.note})
    make = parts_of if softmax is None else seen.parts_of_attention
    for number, (written, read) in itertools.product(splits, ORDERS):
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with the parts of {number} splits in another layout in {step.words}",
            {step.place: seen.joined(make, number, written, read)},
            1.0,
            mistake=(
                "the layouts of the partial results (parts, splits) in scratch differ: they are"
                f" written in the order {_named(written)} and read in the order {_named(read)}, so"
                " that the parts of other rows are merged"
            ),
            of_whole=True,
            rehearsal=rehearsal,
        )


def _named(order: Order) -> str:
    return f"[{', '.join(NAMES[axis] for axis in order)}]"


class _Seen:
    """What a step is given in all its calls: one for each head where the reference takes them one
    after another.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.scores: list[torch.Tensor] = []

    def note(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if not isinstance(args[0], torch.Tensor):
            raise ValueError("no tensor")
        if func.__name__ in ("sum", "mean") and not is_last_axis(args, kwargs):
            raise ValueError("another axis")
        self.calls.append(args)
        return func(*args, **kwargs)

    def note_scores(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        self.scores.append(args[0])
        return func(*args, **kwargs)

    def joined(
        self, make: Callable[[Calls, int], Parts], splits: int, written: Order, read: Order
    ) -> Instead:
        """The step with the parts of all its calls exchanged."""
        turn = itertools.count()
        made: list[torch.Tensor] = []

        def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            if not made:
                parts = make(self.calls, splits)
                made.append(_merged([_relaid(one, written, read) for one in parts]))
            right = func(*args, **kwargs)
            number = next(turn) % len(self.calls)
            own = made[0].unflatten(0, (len(self.calls), -1))[number]
            scale = args[0].shape[-1] if func.__name__ == "mean" else 1
            return (own / scale).reshape(right.shape)

        return instead

    def parts_of_attention(self, calls: Calls, splits: int) -> Parts:
        """Logarithms of sums, and the attention of each part."""
        sums, outputs = [], []
        for scores, (weights, values, *_) in zip(self.scores, calls, strict=True):
            if scores.shape != weights.shape:
                raise ValueError("no weights of these scores")
            cut = _cut(scores.shape[-1], splits)
            parts = [scores[..., one] for one in cut]
            rows = scores.shape[-2]
            sums.append(torch.stack([one.logsumexp(-1).reshape(-1, rows) for one in parts]))
            made = [
                one.softmax(-1).nan_to_num(0.0) @ values[..., at, :]
                for one, at in zip(parts, cut, strict=True)
            ]
            outputs.append(torch.stack([one.reshape(-1, *one.shape[-2:]) for one in made]))
        return torch.cat(sums, 1), torch.cat(outputs, 1)


def _parts_of_product(calls: Calls, splits: int) -> Parts:
    made = []
    for a, b, *_ in calls:
        if a.dim() < 2 or b.dim() < 2:
            raise ValueError("a vector")
        parts = [a[..., one] @ b[..., one, :] for one in _cut(a.shape[-1], splits)]
        made.append(torch.stack([one.reshape(-1, *one.shape[-2:]) for one in parts]))
    return (torch.cat(made, 1),)


def _parts_of_sum(calls: Calls, splits: int) -> Parts:
    made = []
    for value, *_ in calls:
        rows = value.reshape(-1, value.shape[-1])
        made.append(torch.stack([rows[:, one].sum(1) for one in _cut(rows.shape[1], splits)]))
    return (torch.stack(made, 1),)


def _cut(extent: int, splits: int) -> list[slice]:
    size = -(-extent // splits)
    if extent <= splits:
        raise ValueError("too few")
    return [slice(start, start + size) for start in range(0, splits * size, size)]


def _relaid(parts: torch.Tensor, written: Order, read: Order) -> torch.Tensor:
    """Parts (split, plane, row, ...) as they are read."""
    extents, kept = parts.shape[:3], range(3, parts.dim())
    stored = parts.permute(*written, *kept).reshape(math.prod(extents), *parts.shape[3:])
    seen = stored.view(*(extents[axis] for axis in read), *parts.shape[3:])
    found = seen.permute(*(read.index(axis) for axis in range(3)), *kept)
    if torch.equal(found, parts):
        raise ValueError("no change")
    return found


def _merged(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Sums of parts, or weighted by the logarithms of their sums; (planes, rows, ...)."""
    if len(parts) == 1:
        return parts[0].sum(0)
    return (parts[0].softmax(0).unsqueeze(-1) * parts[1]).sum(0)
