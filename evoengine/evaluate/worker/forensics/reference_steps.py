"""The steps of a task's reference: the torch calls in its Python files, by place in the source."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.recomputed_reference import Deadline
from evoengine.evaluate.worker.forensics.step_source import StepSource, step_source

MOST_STEPS = 60
UNNAMED = {"__get__", "__set__", "__getitem__", "__setitem__", "size", "dim", "numel", "split"}
OPERATORS = {
    "__matmul__": "matmul",
    "__mul__": "mul",
    "__rmul__": "mul",
    "__add__": "add",
    "__radd__": "add",
    "__sub__": "sub",
    "__rsub__": "rsub",
    "__truediv__": "div",
    "__rtruediv__": "rdiv",
    "__rdiv__": "rdiv",
    "__neg__": "neg",
    "__pow__": "pow",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "bmm": "matmul",
    "mm": "matmul",
    "negative": "neg",
    "mul_": "mul",
    "add_": "add",
    "sub_": "sub",
    "div_": "div",
}

Place = tuple[CodeType, int]  # a function's code, and the instruction in it


@dataclass(frozen=True)
class ReferenceStep:
    """One torch call of the reference; one in a loop is one step."""

    place: Place
    name: str  # of the torch function, operators by the method's: "mul", "softmax"
    file: str
    source: StepSource
    order: int

    @property
    def words(self) -> str:
        """`sqrt(variance + eps)` in line 29 of layernorm.py, with backticks around the source."""
        return f"`{self.source.text}` in line {self.source.line} of {self.file}"

    @property
    def result(self) -> str:
        """What its result is called: the variable it is assigned to, else its source."""
        return self.source.variable if self.source.is_value else f"`{self.source.text}`"

    def operand(self, number: int) -> str:
        """What operand `number` is called, as in the source: "bias"; "" where it is too long."""
        known = self.source.operands
        return known[number] if number < len(known) else ""


@dataclass
class StepRecorder(Deadline):
    """Notes every step of the functions in a folder."""

    folder: Path
    end: float
    found: dict[Place, ReferenceStep] = field(default_factory=dict)
    # the steps whose results a step takes, by its operands; None for what is no step's
    feeds: dict[Place, tuple[Place | None, ...]] = field(default_factory=dict)
    _made: dict[int, Place] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.end)

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        place = place_of(self.folder)
        name = step_name(func)
        if place is None or name in UNNAMED or len(self.found) >= MOST_STEPS:
            return result
        if place not in self.found:
            self.found[place] = _described(place, name, len(self.found))
            self.feeds[place] = tuple(self._made.get(id(given)) for given in args)
        if isinstance(result, torch.Tensor) and place not in self._made.values():
            self._made[id(result)] = place
            self._kept.append(result)  # so that no other tensor gets its id
        return result


@dataclass
class StepChange(Deadline):
    """Runs the reference with one step done otherwise, or several."""

    folder: Path
    end: float
    # what a step returns in place of func(*args, **kwargs), by its place
    instead: dict[Place, Callable[..., Any]]

    def __post_init__(self) -> None:
        super().__init__(self.end)

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = place_of(self.folder)
        change = self.instead.get(place) if place else None
        return func(*args, **kwargs) if change is None else change(func, args, kwargs)


def step_name(func: Callable[..., Any]) -> str:
    """The name of a torch function, the same for a method and its operator."""
    name = getattr(func, "__name__", "")
    return OPERATORS.get(name, name)


def place_of(folder: Path) -> Place | None:
    """Where in the files of `folder` the torch function was called that runs now."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(folder)):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None


def _described(place: Place, name: str, order: int) -> ReferenceStep:
    code, instruction = place
    span = list(code.co_positions())[instruction // 2]
    source = step_source(code.co_filename, span, code.co_firstlineno)
    return ReferenceStep(place, name, Path(code.co_filename).name, source, order)


def steps_in_order(recorder: StepRecorder) -> Sequence[ReferenceStep]:
    """The steps in the order of their first call."""
    return sorted(recorder.found.values(), key=lambda step: step.order)
