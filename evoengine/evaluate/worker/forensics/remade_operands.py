"""Intermediate results that one of their uses makes from another tensor than the others do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evoengine.evaluate.worker.forensics.changed_step import BINARY, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import (
    SeenTensor,
    StepRecorder,
    steps_in_order,
)
from evoengine.records import DiagnosisKind

MOST = 80


def remade_operands(recorder: StepRecorder) -> Iterator[ChangedStep]:
    """A step's result, for one of the steps that use it, computed from another tensor of the shape
    of its operand: `x - mean` where `total - mean` is meant, and the statistics are right.
    """
    found = 0
    steps = {step.place: step for step in steps_in_order(recorder)}
    for made in recorder.results:
        maker = steps[made.place]
        uses = [use for use in recorder.operands if use.identity == made.identity]
        if maker.name not in BINARY or len({use.place for use in uses}) < 2:
            continue
        for taken in (one for one in recorder.operands if one.place == maker.place):
            for seen in recorder.known_before(maker.place):
                if not _may_be_taken(seen, taken):
                    continue
                right, wrong = maker.operand(taken.number), _name(seen, recorder)
                if not right or not wrong or right == wrong:
                    continue
                for use in uses:
                    if found >= MOST:
                        return
                    found += 1
                    source, remake, use_it = _chain(seen, taken.number, use.number)
                    step = steps[use.place]
                    yield ChangedStep(
                        DiagnosisKind.changed_step,
                        f"with {wrong} in place of {right} in {maker.words}, for {step.words}"
                        " alone",
                        {seen.place: source, maker.place: remake, use.place: use_it},
                        0.98,
                        mistake=f"{wrong} is used in place of {right} for"
                        f" `{step.source.text}`, and {right} itself elsewhere",
                    )


def _may_be_taken(seen: SeenTensor, taken: SeenTensor) -> bool:
    is_other = seen.identity != taken.identity and seen.place != taken.place
    return is_other and seen.shape == taken.shape


def _name(seen: SeenTensor, recorder: StepRecorder) -> str:
    step = recorder.found[seen.place]
    return step.result if seen.number < 0 else step.operand(seen.number)


def _chain(seen: SeenTensor, number: int, used: int) -> tuple[Instead, Instead, Instead]:
    """What the steps do that have the other tensor, make the result, and use it."""
    other: list[Any] = []
    remade: list[Any] = []

    def source(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        other[:] = [(result if seen.number < 0 else args[seen.number]).clone()]
        return result

    def remake(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = list(args)
        given[number] = other[0]
        remade[:] = [func(*given, **kwargs)]
        return func(*args, **kwargs)

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = list(args)
        given[used] = remade[0]
        return func(*given, **kwargs)

    return source, remake, use
