"""Steps in another order, terms on the wrong side of a root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    UNARY,
    ChangedStep,
    first_operand,
)
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    StepRecorder,
)
from evoengine.records import DiagnosisKind

MOVED = {"transpose", "permute", "softmax", "masked_fill", "masked_fill_", "cumsum", "flip", "triu",
         "tril", "where", "pow", "clamp"}  # fmt: skip
COMMUTING = {"add", "mul"}
Held = list[Any]  # what a step left for a later one


def changed_order(steps: Sequence[ReferenceStep], recorder: StepRecorder) -> Iterator[ChangedStep]:
    """The changes of two steps, of which the second takes the first one's result."""
    by_place = {step.place: step for step in steps}
    for step in steps:
        before = _taken(step, 0, by_place, recorder)
        if before is not None:
            yield from _roots(before, step)
            yield from _exchanged(before, step)
        if step.name in COMMUTING:
            before = _taken(step, 1, by_place, recorder)
            if before is not None and before.name in BINARY and _commute_not(before, step):
                yield from _binary(before, step, 1)


def _taken(
    step: ReferenceStep,
    number: int,
    by_place: Mapping[Place, ReferenceStep],
    recorder: StepRecorder,
) -> ReferenceStep | None:
    """The step whose result is operand `number` of `step`."""
    feeds = recorder.feeds.get(step.place, ())
    place = feeds[number] if number < len(feeds) else None
    return by_place.get(place) if place is not None else None


def _two(
    before: ReferenceStep, step: ReferenceStep, first: Any, second: Any, words: str, mistake: str
) -> ChangedStep:
    changes = {before.place: first, step.place: second}
    return ChangedStep(DiagnosisKind.changed_step, words, changes, 1.03, mistake=mistake)


def _roots(before: ReferenceStep, step: ReferenceStep) -> Iterator[ChangedStep]:
    """An eps that is added before a root and not behind it, or the reverse."""
    held: Held = []
    if before.name == "add" and step.name in ("sqrt", "rsqrt"):
        named = before.operand(1) or "the term"

        def outside(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
            root = args[0].sqrt() + held[0]
            return root if step.name == "sqrt" else 1 / root

        yield _two(
            before,
            step,
            _holding(held),
            outside,
            f"with the term of {before.words} added outside of the root, not inside",
            f"{named} is added outside of the root, not inside",
        )
    if before.name == "sqrt" and step.name == "add":
        yield _two(
            before,
            step,
            first_operand,
            lambda f, a, k: (a[0] + a[1]).sqrt(),
            f"with the term of {step.words} added inside of the root, not outside",
            f"{step.operand(1) or 'the term'} is added inside of the root, not outside",
        )


def _exchanged(before: ReferenceStep, step: ReferenceStep) -> Iterator[ChangedStep]:
    """Both in the other order: an addition behind an activation, a factor behind an addition."""
    plain = UNARY - MOVED
    held: Held = []
    names = (before.operand(1), step.operand(1))
    if before.name in BINARY and step.name in plain:
        said = f"{names[0] or 'the second operand'} is {_done(before)} after {step.name}"

        def after(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            return _applied(before, func(*args, **kwargs), held[0])

        yield _two(
            before, step, _holding(held), after, _order(before, step), f"{said}, not before it"
        )
    elif before.name in plain and step.name in BINARY:
        said = f"{names[1] or 'the second operand'} is {_done(step)} before {before.name}"

        def first(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            held[:] = [func, args[1:], kwargs]
            return args[0]

        def earlier(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            return held[0](func(*args, **kwargs), *held[1], **held[2])

        yield _two(before, step, first, earlier, _order(before, step), f"{said}, not after it")
    elif before.name in BINARY and step.name in BINARY and _commute_not(before, step):
        yield from _binary(before, step, 0)


def _binary(before: ReferenceStep, step: ReferenceStep, number: int) -> Iterator[ChangedStep]:
    """A factor behind an addition, or the reverse; `number` is the operand of `step` that `before`
    gives. Of a product either factor may be the late one.
    """
    for late in (1, 0) if before.name in COMMUTING else (1,):
        names = (before.operand(late), step.operand(1 - number))
        said = (
            f"{names[0] or 'the second operand'} is {_done(before)} after"
            f" {names[1] or 'the next operand'} is {_done(step)}"
        )
        held: Held = []

        def second(func: Any, args: tuple[Any, ...], kwargs: Any, held: Held = held) -> Any:
            return _applied(before, func(*args, **kwargs), held[0])

        scaled = {"mul": "not multiplied by", "div": "not divided by"}.get(step.name, "")
        more = ""
        if scaled:
            named = (names[0] or "the second operand", names[1] or "the next operand")
            more = f": {named[0]} is {scaled} {named[1]}"
        yield _two(
            before,
            step,
            _holding(held, late),
            second,
            _order(before, step),
            f"{said}, not before it{more}",
        )


def _order(before: ReferenceStep, step: ReferenceStep) -> str:
    return f"with {before.name} and {step.name} in the other order ({step.words})"


def _done(step: ReferenceStep) -> str:
    return {"add": "added", "sub": "subtracted", "mul": "multiplied", "div": "divided by"}.get(
        step.name, "applied"
    )


def _commute_not(before: ReferenceStep, step: ReferenceStep) -> bool:
    sums, products = {"add", "sub"}, {"mul", "div"}
    return (before.name in sums and step.name in products) or (
        before.name in products and step.name in sums
    )


def _holding(held: Held, late: int = 1) -> Any:
    """A step that gives its other operand and keeps the `late` one."""

    def hold(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
        held[:] = [args[late]]
        return args[1 - late]

    return hold


def _applied(step: ReferenceStep, value: torch.Tensor, other: Any) -> torch.Tensor:
    operations: Mapping[str, Any] = {
        "add": torch.add,
        "sub": torch.sub,
        "mul": torch.mul,
        "div": torch.div,
    }
    if step.name not in operations:
        raise ValueError("no plain operation")
    result: torch.Tensor = operations[step.name](value, other)
    return result
