"""Steps that take another tensor than they should: one of before a step, or of after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    SeenTensor,
    StepRecorder,
    steps_in_order,
)
from evoengine.records import DiagnosisKind

MOST_SWAPS = 400


def changed_operands(recorder: StepRecorder) -> Iterator[ChangedStep]:
    """Every operand of a step exchanged for another tensor of its shape that is known by then.
    Those that it is made from, or that are made from it, come first.
    """
    steps = {step.place: step for step in steps_in_order(recorder)}
    related: list[ChangedStep] = []
    others: list[ChangedStep] = []
    for taken in recorder.operands:
        step = steps[taken.place]
        for seen in recorder.known_before(step.place):
            if seen.identity == taken.identity or seen.shape != taken.shape:
                continue
            earlier = recorder.is_made_from(taken.identity, seen.identity)
            later = recorder.is_made_from(seen.identity, taken.identity)
            words = _words(step, taken, seen, steps, recorder)
            if words is None:
                continue
            mistake, what = words
            made = _swap(step.place, taken.number, seen)
            kind = DiagnosisKind.changed_step
            weight = 1.0 if earlier or later else 0.97
            change = ChangedStep(kind, what, made, weight, mistake=mistake)
            (related if earlier or later else others).append(change)
    yield from (related + others)[:MOST_SWAPS]


def _words(
    step: ReferenceStep,
    taken: SeenTensor,
    seen: SeenTensor,
    steps: Mapping[Place, ReferenceStep],
    recorder: StepRecorder,
) -> tuple[str, str] | None:
    """The mistake, and how the reference is changed; None where the tensors have no names."""
    right, wrong = _name(taken, steps) or _made(taken, steps, recorder), _name(seen, steps)
    if not right or not wrong:
        return None
    variable = step.source.variable
    target = f" in {variable}" if variable else ""
    what = f"with {wrong} in place of {right} in {step.words}"
    if right == wrong:
        if recorder.is_made_from(taken.identity, seen.identity):
            what = f"with {right} of before its update in {step.words}"
            return f"the old value of {right}, before its update, is used{target}", what
        return None
    if recorder.is_made_from(seen.identity, taken.identity):
        return (
            f"{right} is overwritten too early: its new value {wrong} is used{target}, not the old"
            " one",
            what,
        )
    maker = recorder.maker.get(taken.identity)
    if maker is not None and recorder.is_made_from(taken.identity, seen.identity):
        skipped = _skipped(steps[maker], wrong)
        if wrong not in (steps[maker].operand(0), steps[maker].operand(1)):  # several steps
            skipped = f"{right} is missing, left out as a whole"
        return f"{skipped}{target}: {wrong} is used in place of {right}", what
    return f"{wrong} is used{target} where {right} is meant", what


def _skipped(step: ReferenceStep, kept: str) -> str:
    """That a step is missing for one use of its result, which takes the operand `kept` alone."""
    other = step.operand(0 if kept == step.operand(1) else 1)
    doing = {"add": "added", "sub": "subtracted", "mul": "multiplied", "div": "divided by"}
    if step.name in doing and other:
        return f"{other} is not {doing[step.name]}"
    return f"{step.name} is missing"


def _name(seen: SeenTensor, steps: Mapping[Place, ReferenceStep]) -> str:
    step = steps[seen.place]
    return step.result if seen.number < 0 else step.operand(seen.number)


def _made(seen: SeenTensor, steps: Mapping[Place, ReferenceStep], recorder: StepRecorder) -> str:
    """The source of the step that made a tensor, for one too long to name."""
    maker = recorder.maker.get(seen.identity)
    return f"`{steps[maker].source.text}`" if maker is not None and maker in steps else ""


def _swap(place: Place, number: int, source: SeenTensor) -> Mapping[Place, Instead]:
    """Operand `number` of the step at `place` is the tensor `source`."""
    held: list[Any] = []

    def given(args: tuple[Any, ...]) -> list[Any]:
        found = list(args)
        found[number] = held[0].clone()
        return found

    if source.place == place:

        def exchange(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            held[:] = [args[source.number]]
            return func(*given(args), **kwargs)

        return {place: exchange}

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        held[:] = [_tensor(found if source.number < 0 else args[source.number])]
        return found

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return func(*given(args), **kwargs)

    return {source.place: hold, place: use}


def _tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise ValueError("no tensor")
    return value
