"""The steps of a task's reference: the torch calls in its Python files, by place in the source.

A torch function that has several steps, such as softmax, is a step itself, and so are the steps of
it as it is written out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from evoengine.evaluate.worker.forensics import written_out_functions, written_out_windows
from evoengine.evaluate.worker.forensics.recomputed_reference import Deadline, is_same
from evoengine.evaluate.worker.forensics.step_source import StepSource, step_source
from evoengine.evaluate.worker.forensics.time_limit import TimeLimit

WRITTEN_OUT = written_out_functions.WRITTEN_OUT
WRITTEN_OUT_FILES = {written_out_functions.__file__, written_out_windows.__file__}
INSTALLED = "/site-packages/"  # where a task's folder holds a virtual environment
MOST_STEPS = 90
MOST_NESTED = 3  # functions written out within one another: attention, softmax
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
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "bmm": "matmul",
    "mm": "matmul",
    "negative": "neg",
    "linalg_vector_norm": "vector_norm",
    "mv": "matmul",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
    "__eq__": "eq",
    "__ne__": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "mul_": "mul",
    "add_": "add",
    "sub_": "sub",
    "div_": "div",
}

# a function's code and the instruction in it; from the inside out where functions are written out
Place = tuple[tuple[CodeType, int], ...]
# what a written-out function may raise on arguments that it does not know
UNKNOWN_ARGUMENTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class ReferenceStep:
    """One torch call of the reference; one in a loop is one step."""

    place: Place
    name: str  # of the torch function, operators by the method's: "mul", "softmax"
    file: str
    source: StepSource
    order: int
    line: int  # in that file
    function: str = ""  # of torch, where the step is one of it, as it is written out

    @property
    def words(self) -> str:
        """`sqrt(variance + eps)` in line 29 of layernorm.py, with backticks around the source."""
        inside = f" of {self.function}" if self.function else ""
        return f"`{self.source.text}`{inside} in line {self.line} of {self.file}"

    @property
    def result(self) -> str:
        """What its result is called: the variable it is assigned to, else its source."""
        return self.source.variable if self.source.is_value else f"`{self.source.text}`"

    def operand(self, number: int) -> str:
        """What operand `number` is called, as in the source: "bias"; "" where it is too long."""
        known = self.source.operands
        return known[number] if number < len(known) else ""


@dataclass(frozen=True)
class SeenTensor:
    """A floating tensor as the operand of a step, or its result, which has the number -1."""

    place: Place
    number: int
    identity: int
    shape: torch.Size


@dataclass(frozen=True)
class CarriedOperand:
    """An operand of a step in a loop that a step of the turn before has made, its state."""

    place: Place
    number: int
    maker: Place


@dataclass
class StepRecorder(Deadline):
    """Notes every step of the functions in a folder."""

    folder: Path
    limit: TimeLimit
    found: dict[Place, ReferenceStep] = field(default_factory=dict)
    # the steps whose results a step takes, by its operands; None for what is no step's
    feeds: dict[Place, tuple[Place | None, ...]] = field(default_factory=dict)
    operands: list[SeenTensor] = field(default_factory=list)
    results: list[SeenTensor] = field(default_factory=list)
    is_repeated: bool = False  # whether a step is called more than once, as in a loop
    calls: dict[Place, int] = field(default_factory=dict)  # how often each step is called
    carried: dict[tuple[Place, int], CarriedOperand] = field(default_factory=dict)
    maker: dict[int, Place] = field(default_factory=dict)  # the first step that gave a tensor
    _sources: dict[int, set[int]] = field(default_factory=dict)  # all that a tensor is made from
    _made: dict[int, Place] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)
    _by_identity: dict[int, torch.Tensor] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.limit)

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = place_of(self.folder)
        name = step_name(func)
        if place is None or name in UNNAMED or len(self.found) >= MOST_STEPS:
            return func(*args, **kwargs)
        self.calls[place] = self.calls.get(place, 0) + 1
        if place in self.found:
            self.is_repeated = True
            if self.calls[place] == 2 and not _is_in_place(func):
                self._note_carried(place, args)
        else:
            self.found[place] = _described(place, name, len(self.found), args)
            self.feeds[place] = tuple(self._made.get(id(given)) for given in args)
            self._note_operands(place, args)
        result = self._written_out(place, name, func, args, kwargs)
        self._note_result(place, args, result)
        if isinstance(result, torch.Tensor) and place not in self._made.values():
            self._made[id(result)] = place
            self._kept.append(result)  # so that no other tensor gets its id
        return result

    def known_before(self, place: Place) -> Iterator[SeenTensor]:
        """Each tensor once that a step could take by mistake, inputs and results of others."""
        order = self.found[place].order
        seen = set[int]()
        for one in (*self.results, *self.operands):
            step = self.found.get(one.place)
            if step is None or one.identity in seen or step.order > order:
                continue
            if one.number < 0 and one.place == place:
                continue
            seen.add(one.identity)
            yield one

    def value_of(self, seen: SeenTensor) -> torch.Tensor | None:
        """The tensor itself; None where it is not kept."""
        if self._by_identity is None or len(self._by_identity) != len(self._kept):
            self._by_identity = {id(one): one for one in self._kept}
        return self._by_identity.get(seen.identity)

    def is_made_from(self, made: int, source: int) -> bool:
        """Whether one tensor is computed from another."""
        return source in self._sources.get(made, ())

    def _note_carried(self, place: Place, args: tuple[Any, ...]) -> None:
        """The operands that no step before this one made in the turn before, but one after it."""
        for number, given in enumerate(args):
            maker = self._made.get(id(given))
            if maker is not None and self.found[maker].order >= self.found[place].order:
                self.carried[place, number] = CarriedOperand(place, number, maker)

    def _note_operands(self, place: Place, args: tuple[Any, ...]) -> None:
        for number, given in enumerate(args):
            if isinstance(given, torch.Tensor) and given.is_floating_point():
                self.operands.append(SeenTensor(place, number, id(given), given.shape))
                self._kept.append(given)

    def _note_result(self, place: Place, args: tuple[Any, ...], result: Any) -> None:
        """Views of a tensor that has several parts are made from it, too."""
        sources = set[int]()
        for given in args:
            for one in given if isinstance(given, tuple | list) else (given,):
                if isinstance(one, torch.Tensor):
                    sources |= {id(one)} | self._sources.get(id(one), set())
        for one in result if isinstance(result, tuple | list) else (result,):
            if isinstance(one, torch.Tensor) and one.is_floating_point():
                self._sources.setdefault(id(one), set()).update(sources)
                self._kept.append(one)
                if isinstance(result, torch.Tensor) and id(one) not in self.maker:
                    self.maker[id(one)] = place
                    self.results.append(SeenTensor(place, -1, id(one), one.shape))

    def _written_out(
        self,
        place: Place,
        name: str,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The function's result, with its own steps noted where it has some."""
        result = func(*args, **kwargs)
        function = WRITTEN_OUT.get(name)
        if function is None or len(place) > MOST_NESTED:
            return result
        before = dict(self.found)
        noted = len(self.operands), len(self.results)
        try:
            with self:
                found = function(*args, **kwargs)
            if is_same(found, result):
                return found
        except UNKNOWN_ARGUMENTS:
            pass
        self.found = before
        del self.operands[noted[0] :], self.results[noted[1] :]
        return result


@dataclass
class StepChange(Deadline):
    """Runs the reference with one step done otherwise, or several."""

    folder: Path
    limit: TimeLimit
    # what a step returns in place of func(*args, **kwargs), by its place
    instead: dict[Place, Callable[..., Any]]

    def __post_init__(self) -> None:
        super().__init__(self.limit)
        # the functions that must be written out because a step of theirs is changed
        self._around = {place[at:] for place in self.instead for at in range(1, len(place))}

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = place_of(self.folder)
        if place in self._around:
            with self:
                return WRITTEN_OUT[step_name(func)](*args, **kwargs)
        change = self.instead.get(place) if place else None
        return func(*args, **kwargs) if change is None else change(func, args, kwargs)


def step_name(func: Callable[..., Any]) -> str:
    """The name of a torch function, the same for a method and its operator."""
    name = getattr(func, "__name__", "")
    return OPERATORS.get(name, name)


def _is_in_place(func: Callable[..., Any]) -> bool:
    """Whether a torch function changes its operand: `add_`, `__iadd__`."""
    name = getattr(func, "__name__", "")
    return name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def place_of(folder: Path) -> Place | None:
    """Where in the files of `folder` the torch function was called that runs now."""
    inside: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file in WRITTEN_OUT_FILES:
            inside.append((frame.f_code, frame.f_lasti))
        elif file.startswith(f"{folder}/") and INSTALLED not in file:
            return (*inside, (frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return None


def _is_reflected(place: Place, operands: Sequence[str], args: tuple[Any, ...]) -> bool:
    """Whether the first argument stands on the right, as x does in 2 * x."""
    if len(operands) != 2 or len(args) != 2 or isinstance(args[1], torch.Tensor):
        return False
    known = _variables(place[0][0])
    return known.get(operands[1]) is args[0] or known.get(operands[0]) is args[1]


def _variables(code: CodeType) -> Mapping[str, Any]:
    """Those of the innermost running call of a function."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def _described(place: Place, name: str, order: int, args: tuple[Any, ...]) -> ReferenceStep:
    source = _source_of(place[0])
    if _is_reflected(place, source.operands, args):
        source = replace(source, operands=source.operands[::-1])
    outside = source if len(place) == 1 else _source_of(place[-1])
    file = Path(place[-1][0].co_filename).name
    function = "" if len(place) == 1 else place[0][0].co_name
    return ReferenceStep(place, name, file, source, order, outside.line, function)


def _source_of(place: tuple[CodeType, int]) -> StepSource:
    code, instruction = place
    span = list(code.co_positions())[instruction // 2]
    return step_source(code.co_filename, span, code.co_firstlineno)


def steps_in_order(recorder: StepRecorder) -> Sequence[ReferenceStep]:
    """The steps in the order of their first call."""
    return sorted(recorder.found.values(), key=lambda step: step.order)
