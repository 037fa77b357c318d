"""Recurrences whose state is lost, as where a kernel begins every chunk with an empty one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import MOST_TILES, ChangedStep, first_operand
from evoengine.evaluate.worker.forensics.reference_steps import StepRecorder, steps_in_order
from evoengine.records import DiagnosisKind

CHUNKS = (16, 32, 64, 8, 128)
MOST_STEPS = 4
SCALED = {"mul", "__mul__", "__rmul__", "div"}


class CountedCalls:
    """A step that is done otherwise in some of its calls, which are counted from 0 in each
    computation of the reference.
    """

    def __init__(self, is_other: Callable[[int], bool], other: Callable[..., Any]) -> None:
        self._is_other = is_other
        self._other = other
        self._calls = 0

    def begin(self) -> None:
        """The next call is the first one."""
        self._calls = 0

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        number, self._calls = self._calls, self._calls + 1
        return (self._other if self._is_other(number) else _usual)(func, args, kwargs)


def carried_states(recorder: StepRecorder, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of steps that take what their own earlier calls gave."""
    steps = [one for one in steps_in_order(recorder) if one.place in recorder.carried]
    scaled = [one for one in steps if one.name in SCALED]
    for step in (scaled or steps)[:MOST_STEPS]:
        for chunk in dict.fromkeys((*tiles[:MOST_TILES], *CHUNKS)):
            yield ChangedStep(
                DiagnosisKind.changed_step,
                f"with 0 in place of {step.words} in every {chunk}th round",
                {step.place: CountedCalls(lambda n, c=chunk: n > 0 and n % c == 0, _nothing)},  # type: ignore[misc]
                1.0,
                mistake="the state (the carry) of the recurrence is lost at the begin of every"
                f" chunk (tile) of {chunk}: it begins at zero in each, what earlier chunks gave is"
                " missing",
                of_whole=True,
            )
        if step.name in SCALED:
            yield ChangedStep(
                DiagnosisKind.changed_step,
                f"without {step.words} in its first rounds of every 16, from the second on",
                {step.place: CountedCalls(lambda n: n > 0 and n % 16 == 0, first_operand)},
                0.99,
                mistake="the state is not multiplied by its decay where one chunk is joined to the"
                " next",
                of_whole=True,
            )


def _usual(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _nothing(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    found = func(*args, **kwargs)
    if not isinstance(found, torch.Tensor):
        raise ValueError("no tensor")
    return torch.zeros_like(found)
