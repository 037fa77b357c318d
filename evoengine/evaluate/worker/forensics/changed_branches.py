"""Mistakes in a branch of a function of one value, or in all the places that use it.

A device function such as `x > 0 ? x + 1 : exp(x)` is an activation and what is added to it, fused:
a mistake in one branch holds for one sign alone. And what calls it for queries and for keys errs in
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_operations import (
    done_twice,
    left_out,
    other_operations,
)
from evoengine.evaluate.worker.forensics.changed_step import BINARY, UNARY, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    StepRecorder,
)
from evoengine.records import DiagnosisKind

BRANCHED = {"elu", "relu", "leaky_relu", "selu", "celu", "gelu", "silu", "softplus", "mish",
            "hardswish", "where", "exp", "tanh", "sigmoid"}  # fmt: skip
MOST_ALIKE = 6
DONE = {"add": "added", "sub": "subtracted", "mul": "multiplied", "div": "divided by"}


def changed_branches(
    steps: Sequence[ReferenceStep], recorder: StepRecorder
) -> Iterator[ChangedStep]:
    """What follows an activation, missing for one sign; and changes of all steps that are alike."""
    by_place = {step.place: step for step in steps}
    groups: dict[tuple[str, ...], list[ReferenceStep]] = {}
    for step in steps:
        before = _first_maker(step, by_place, recorder)
        if step.name in BINARY | UNARY:
            key = (step.name, step.function, before.name if before else "", _second(step))
            groups.setdefault(key, []).append(step)
    for alike in groups.values():
        yield from _one_sided(alike, by_place, recorder)
    for alike in groups.values():
        if 1 < len(alike) <= MOST_ALIKE:
            yield from _of_all(alike)


def _first_maker(
    step: ReferenceStep, by_place: Mapping[Place, ReferenceStep], recorder: StepRecorder
) -> ReferenceStep | None:
    feeds = recorder.feeds.get(step.place, ())
    return by_place.get(feeds[0]) if feeds and feeds[0] is not None else None


def _second(step: ReferenceStep) -> str:
    """The second operand as it is written, of a step that has one."""
    return step.operand(1) if step.name in BINARY else ""


def _names(steps: Sequence[ReferenceStep]) -> str:
    return " and ".join(dict.fromkeys(step.words for step in steps))


def _one_sided(
    alike: Sequence[ReferenceStep],
    by_place: Mapping[Place, ReferenceStep],
    recorder: StepRecorder,
) -> Iterator[ChangedStep]:
    """The step done for one sign of what the activation before it is given."""
    before = [_first_maker(step, by_place, recorder) for step in alike]
    made = [one for one in before if one is not None]
    if alike[0].name not in DONE or len(made) < len(alike) or made[0].name not in BRANCHED:
        return
    named = _second(alike[0]) or "the second operand"
    activation = made[0].name
    pairs = list(zip(made, alike, strict=True))
    choices = [pairs] if len(pairs) == 1 else [pairs, *([one] for one in pairs)]
    for chosen in choices:
        for positive, which in ((True, "positive"), (False, "negative")):
            instead: dict[Place, Instead] = {}
            for first, second in chosen:
                hold, use = _of_one_sign(positive)
                instead |= {first.place: hold, second.place: use}
            yield ChangedStep(
                DiagnosisKind.changed_step,
                f"without {named} {DONE[alike[0].name]} for {which} values in"
                f" {_names([second for _, second in chosen])}",
                instead,
                1.01,
                mistake=f"{named} is missing in the branch of {which} values (x"
                f" {'> 0' if positive else '<= 0'}) of the activation, {activation}: it is"
                f" {DONE[alike[0].name].removesuffix(' by')} in the other branch only",
            )


def _of_one_sign(positive: bool) -> tuple[Instead, Instead]:
    """The activation, which notes what it is given, and the step behind it, which needs that."""
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = args[1] if func.__name__ == "where" else args[0]
        held[:] = [given]
        return func(*args, **kwargs)

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        without = held[0] > 0 if positive else held[0] <= 0
        return torch.where(without, args[0], func(*args, **kwargs))

    return hold, use


def _of_all(alike: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """The same change of every one of them."""
    for changes in (left_out, other_operations, done_twice):
        yield from _together(alike, changes)


def _together(
    alike: Sequence[ReferenceStep], changes: Callable[[ReferenceStep], Iterator[ChangedStep]]
) -> Iterator[ChangedStep]:
    for ones in zip(*(changes(step) for step in alike), strict=False):
        instead = {place: done for one in ones for place, done in one.instead.items()}
        said = f"{ones[0].mistake}, in each of {len(ones)} places alike" if ones[0].mistake else ""
        words = f"{ones[0].words} and in the same way {_names(alike[1:])}"
        yield replace(ones[0], instead=instead, words=words, mistake=said)
