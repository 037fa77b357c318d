"""Calls the task's reference once more, with other inputs, other scalars or other steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from evoengine.errors import TaskError
from evoengine.evaluate.worker.forensics.checked_indices import CheckedIndices
from evoengine.evaluate.worker.forensics.time_limit import TimeLimit, time_limit
from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.expression import Value
from evoengine.task.schema import Task

CPU = torch.device("cpu")


class TimeUp(Exception):  # noqa: N818 - no error: the analysis ends with what it has
    """The time of an analysis is over."""


class Deadline(TorchFunctionMode):
    """Ends the function inside at its next torch call once time is up; raises TimeUp there."""

    is_differentiated = False  # whether outputs keep what their gradients are computed from

    def __init__(self, limit: TimeLimit) -> None:
        super().__init__()
        self.limit = limit

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if self.limit.is_over:
            raise TimeUp
        return self.run(func, args, kwargs or {})

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of one call; subclasses change it."""
        return func(*args, **kwargs)

    def __enter__(self) -> Self:
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Processor:
    """Where references are computed again; `turn` waits for the right to use it, and `answer`
    raises where the device has broken.
    """

    device: torch.device = CPU
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    answer: Callable[[], object] = lambda: None

    def checked(self) -> AbstractContextManager[object]:
        """For code that may use indices out of range."""
        return CheckedIndices() if self.device.type == "cuda" else nullcontext()  # type: ignore[no-untyped-call]


ON_CPU = Processor()


class RecomputedReference:
    """The reference of one task on one case, up to a deadline; it takes and returns tensors of the
    CPU.
    """

    def __init__(
        self,
        task: Task,
        functions: TaskFunctions,
        case: str,
        seconds: float,
        processor: Processor,
    ) -> None:
        """`seconds` of the processor are counted once the reference is imported; raises TaskError
        where it cannot be.
        """
        self.processor = processor
        self.task = task
        self.functions = functions
        self.case = case
        self.seconds = seconds
        functions.load(task.reference)  # an import takes seconds, and happens once
        self.limit = time_limit(seconds)
        self.scalars: dict[str, Value] = scalar_inputs(task, case)

    def __call__(
        self,
        tensors: Tensors,
        scalars: Mapping[str, Value] | None = None,
        mode: Deadline | None = None,
    ) -> Tensors | None:
        """The outputs by name, float64; None where the reference fails on these inputs.

        `scalars` replace those of the case. Raises TimeUp.
        """
        if self.limit.is_over:
            raise TimeUp
        with self.processor.turn():
            try:
                known = {**self.scalars, **(scalars or {}), **self._copied(tensors)}
                with self.processor.checked(), mode or Deadline(self.limit):
                    result = self.functions.unannounced_result(
                        self.task.reference, known, self.case
                    )
            except TaskError:  # also where the deadline ended it
                if self.limit.is_over:
                    raise TimeUp from None
                return None
            return self._named(result, mode is not None and mode.is_differentiated)

    def _copied(self, tensors: Tensors) -> Tensors:
        """Copies where the reference is computed, floating ones as float64."""
        device = self.processor.device
        return {
            name: value.to(device, torch.float64 if value.is_floating_point() else None, copy=True)
            for name, value in tensors.items()
        }

    def _named(self, result: Any, is_differentiated: bool) -> Tensors | None:
        outputs = list(self.task.outputs)
        if isinstance(result, torch.Tensor):
            result = (result,)
        if isinstance(result, tuple | list) and len(result) == len(outputs):
            result = dict(zip(outputs, result, strict=True))
        if not isinstance(result, dict) or set(result) != set(outputs):
            return None
        if not all(isinstance(value, torch.Tensor) for value in result.values()):
            return None
        if not is_differentiated:
            result = {name: value.detach() for name, value in result.items()}
        return {name: value.cpu().double() for name, value in result.items()}


def is_same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two float64 tensors are equal but for the order of sums."""
    if first.shape != second.shape:
        return False
    if torch.equal(first, second):  # as mostly on one device; the rest takes several times as long
        return True
    finite = second[second.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    near = (first - second).abs() <= 1e-9 * scale if math.isfinite(scale) else first == second
    return bool((near | (first == second) | (first.isnan() & second.isnan())).all())
