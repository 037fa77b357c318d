"""The task's own functions: float64 reference, trusted implementation, baselines."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.deferred_compile import DeferredCompile, deferred_compile
from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.evaluate.worker.returned_values import outputs_of, refuse_written
from evoengine.task.schema import Task

MAX_MESSAGE_CHARACTERS = 500  # of an exception that a function raises


# Called before a function runs: the step's description, and the function's name and case. Its time
# inside the context is the function's.
AnnounceFunction = Callable[[str, str], AbstractContextManager[None]]


def _announce_nothing(_step: str, _function: str) -> AbstractContextManager[None]:
    return nullcontext()


class TaskFunctions:
    """The Python functions that a task file names, called by argument name."""

    def __init__(
        self, task: Task, task_path: Path, announce: AnnounceFunction = _announce_nothing
    ) -> None:
        """`announce` is called before every function, so that an endless one can be named."""
        self.task = task
        self.folder = task_path.parent
        self._announce = announce
        self._modules: dict[str, Any] = {}

    def reference(
        self, tensors: Tensors, case: str, flags: Mapping[str, bool] | None = None
    ) -> Tensors:
        """The reference's outputs by name: float64 in the task's shapes, on the inputs' device.

        `tensors` are the case's inputs by name; floating-point ones are copied to float64. `flags`
        replace those of the case. Raises TaskError as `call` does.
        """
        wide = {
            name: value.to(torch.float64, copy=True) if value.is_floating_point() else value.clone()
            for name, value in tensors.items()
        }
        return {
            name: value.double()
            for name, value in self._once(
                self.task.reference, wide, tensors, case, exact=True, flags=flags
            ).items()
        }

    def call(self, name: str, tensors: Tensors, case: str) -> Tensors:
        """The outputs of function `name` ("file.py:function") for copies of `tensors`, by name.

        They have the task's shapes, the dtype that the function returns, and lie on the
        device of `tensors`. Raises TaskError when the function raises, returns other tensors
        than the task's outputs, or writes into its inputs.
        """
        return self._once(
            name, {key: value.clone() for key, value in tensors.items()}, tensors, case, exact=False
        )

    def _once(
        self,
        name: str,
        given: Tensors,
        tensors: Tensors,
        case: str,
        exact: bool,
        flags: Mapping[str, bool] | None = None,
    ) -> Tensors:
        with self.running(name, case):
            outputs = self.bind(name, given, case, exact, flags)()
            with _errors_named(name, case):
                for value in outputs.values():
                    if value.is_cuda:
                        # its kernels end within its own time, and fail as its own fault
                        torch.cuda.synchronize(value.device)
            kept = {key: value for key, value in tensors.items() if key not in self.task.outputs}
            refuse_written(name, given, kept, case)
        return outputs

    def result(self, name: str, known: Mapping[str, Any], case: str) -> Any:
        """What function `name` returns for those of `known` that its parameters name; raises
        TaskError when it raises or takes others.
        """
        with self.running(name, case):
            return self.unannounced_result(name, known, case)

    def unannounced_result(self, name: str, known: Mapping[str, Any], case: str) -> Any:
        """As `result`, on the caller's own time."""
        function = self._function(name)
        arguments = self._arguments(name, function, known)
        with _errors_named(name, case):
            found = function(**arguments)
            if isinstance(found, torch.Tensor) and found.is_cuda:
                torch.cuda.synchronize(found.device)
        return found

    def load(self, name: str) -> None:
        """Imports function `name`, so that its first call does not; raises TaskError."""
        self._function(name)

    def import_compiler(self, name: str, case: str) -> None:
        """Imports what compiles function `name`, if torch.compile does; raises TaskError. It takes
        seconds, and no work of the device; the function's first call takes that.
        """
        function = self._function(name)
        if isinstance(function, DeferredCompile) and not function.has_compiler:
            with self.running(name, case), _errors_named(name, case):
                function.import_compiler()

    def file_of(self, name: str) -> Path:
        """The Python file of function `name`."""
        return self.folder / name.split(":")[0]

    def running(self, name: str, case: str) -> AbstractContextManager[None]:
        """A context whose time is charged to function `name`."""
        hidden = case in self.task.hidden_cases
        # a step may be shown to a model, an error never is
        shown = "a hidden case" if hidden else f"case {case}"
        return self._announce(
            f"computing {name} for {shown}",
            f"{name} for case {case}{' (hidden)' if hidden else ''}",
        )

    def bind(
        self,
        name: str,
        tensors: Tensors,
        case: str,
        exact: bool = False,
        flags: Mapping[str, bool] | None = None,
    ) -> Callable[[], Tensors]:
        """A call of function `name` with these arguments; it returns the outputs by name.

        With `exact`, for the reference, floating-point outputs must be float64. `flags` replace
        those of the case.
        """
        function = self._function(name)
        known = {**scalar_inputs(self.task, case), **(flags or {}), **tensors}
        arguments = self._arguments(name, function, known)
        device = next((value.device for value in tensors.values()), None)

        def run() -> Tensors:
            with _errors_named(name, case):
                result = function(**arguments)
            return outputs_of(self.task, name, result, case, device, exact)

        return run

    def _function(self, name: str) -> Callable[..., Any]:
        file, function = name.split(":")
        if file not in self._modules:
            self._modules[file] = _import(self.folder / file)
        found = getattr(self._modules[file], function, None)
        if not callable(found):
            raise TaskError(
                f"{self.folder / file}: expected a function {function!r}, there is none"
            )
        return found  # type: ignore[no-any-return]  # checked to be callable

    def _arguments(
        self, name: str, function: Callable[..., Any], known: Mapping[str, Any]
    ) -> dict[str, Any]:
        wanted = list(inspect.signature(function).parameters)
        unknown = [parameter for parameter in wanted if parameter not in known]
        if unknown:
            raise TaskError(
                f"{name} takes {', '.join(unknown)}, which it is not given; known:"
                f" {', '.join(known)}"
            )
        return {parameter: known[parameter] for parameter in wanted}


@contextmanager
def _errors_named(name: str, case: str) -> Iterator[None]:
    """Raises a TaskError that names the function for whatever it raises."""
    try:
        yield
    except (
        BaseException
    ) as error:  # the top of the user's code: sys.exit() there must not end this process
        raise TaskError(
            _message(f"{name} raised {type(error).__name__} for case {case}", error)
        ) from error


def _message(what: str, error: BaseException) -> str:
    """`what` and the first line of `error`; raises TaskError where its text raises, too."""
    try:
        lines = str(error).strip().splitlines()
    except BaseException as another:
        raise TaskError(f"{what}, and its text raises {type(another).__name__}") from another
    return f"{what}: {lines[0][:MAX_MESSAGE_CHARACTERS]}" if lines else what


def _import(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"evoengine_task_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise TaskError(f"no reference file {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    try:
        with deferred_compile():
            spec.loader.exec_module(module)
    except BaseException as error:  # whatever the user's file raises is a fault of that file
        raise TaskError(_message(f"{path}: {type(error).__name__} on import", error)) from error
    return module
