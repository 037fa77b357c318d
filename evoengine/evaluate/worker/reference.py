"""The task's own functions: float64 reference, trusted implementation, baselines.

References are computed once per input set and kept on the host: while a candidate runs,
no right answer is in the device's memory.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.task import Task, shape_of

HOST_CACHE_BYTES = 4 * 1024**3  # the shipped attention tasks need 0.7 GiB


class TaskFunctions:
    """The Python functions that a task file names, called by argument name."""

    def __init__(self, task: Task, task_path: Path) -> None:
        self.task = task
        self.folder = task_path.parent
        self._modules: dict[str, Any] = {}

    def reference(self, tensors: Tensors, case: str) -> Tensors:
        """The outputs in float64, computed from float64 copies of `tensors`."""
        wide = {name: value.double() if value.is_floating_point() else value for name, value in tensors.items()}
        return {name: value.double() for name, value in self.call(self.task.reference, wide, case).items()}

    def call(self, name: str, tensors: Tensors, case: str) -> Tensors:
        """The outputs of function `name` ("file.py:function"), by output name; raises TaskError when it raises."""
        return self.bind(name, tensors, case)()

    def bind(self, name: str, tensors: Tensors, case: str) -> Callable[[], Tensors]:
        """A call of function `name` with all arguments looked up."""
        function = self._function(name)
        arguments = self._arguments(name, function, {**scalar_inputs(self.task, case), **tensors})

        def run() -> Tensors:
            try:
                result = function(**arguments)
            except Exception as error:  # whatever the user's function raises is told as a fault of that function
                first = str(error).strip().splitlines()[0] if str(error).strip() else ""
                raise TaskError(f"{name} raised {type(error).__name__} for case {case}: {first}") from error
            return self._by_name(name, result, case)

        return run

    def _function(self, name: str) -> Callable[..., Any]:
        file, function = name.split(":")
        if file not in self._modules:
            self._modules[file] = _import(self.folder / file)
        found = getattr(self._modules[file], function, None)
        if not callable(found):
            raise TaskError(f"{self.folder / file}: expected a function {function!r}, there is none")
        return found  # type: ignore[no-any-return]  # checked to be callable

    def _arguments(self, name: str, function: Callable[..., Any], known: Mapping[str, Any]) -> dict[str, Any]:
        wanted = list(inspect.signature(function).parameters)
        unknown = [parameter for parameter in wanted if parameter not in known]
        if unknown:
            raise TaskError(f"{name} takes {', '.join(unknown)}, which is no input, dimension or flag; known: {', '.join(known)}")
        return {parameter: known[parameter] for parameter in wanted}

    def _by_name(self, name: str, result: Any, case: str) -> Tensors:
        outputs = self.task.outputs
        if isinstance(result, torch.Tensor):
            result = (result,)
        if isinstance(result, tuple | list) and len(result) == len(outputs):
            result = dict(zip(outputs, result, strict=True))
        if not isinstance(result, dict) or set(result) != set(outputs):
            raise TaskError(f"{name}: expected a tensor for each of {', '.join(outputs)}, got {type(result).__name__}")
        for key, spec in outputs.items():
            wanted = shape_of(spec.shape, self.task.scope(case))
            found = tuple(result[key].shape) if isinstance(result[key], torch.Tensor) else type(result[key]).__name__
            if found != wanted:  # a comparison would broadcast it
                raise TaskError(f"{name}: {key} must be a tensor of shape {wanted} for case {case}, got {found}")
        return result


def _import(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"evoengine_task_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise TaskError(f"no reference file {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises is told as a fault of that file
        raise TaskError(f"{path}: {type(error).__name__} on import: {error}") from error
    return module


class HostCache:
    """Keeps the most recently used references, on the host, up to a number of bytes."""

    def __init__(self, limit_bytes: int = HOST_CACHE_BYTES) -> None:
        self._limit = limit_bytes
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._bytes = 0

    def get(self, key: Any, make: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        """The value of `key`, made where it is not kept; `size` tells its bytes."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        value = make()
        self._kept[key] = value
        self._bytes += size(value)
        while self._bytes > self._limit and len(self._kept) > 1:
            _, old = self._kept.popitem(last=False)
            self._bytes -= size(old)
        return value
