"""torch.compile in a task's own file: a function is compiled by its first call.

torch.compile() itself imports its back end, which takes as long as torch again, in every process
that reads the file: most never call what it returns.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Function = Callable[..., Any]


class DeferredCompile:
    """A function that torch compiles when it is first called; its signature is the function's."""

    def __init__(self, function: Function, compile_it: Callable[[Function], Function]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._compile = compile_it
        self._compiled: Function | None = None

    @property
    def has_compiler(self) -> bool:
        """Whether the compiler is imported, so that a call begins with the function itself."""
        return self._compiled is not None

    def import_compiler(self) -> None:
        """Calls torch.compile, which imports its back end; kernels are made by the first call."""
        self._compiled = self._compile(self._function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._compiled is None:
            self.import_compiler()
        assert self._compiled is not None
        return self._compiled(*arguments, **named)


@contextmanager
def deferred_compile() -> Iterator[None]:
    """While it lasts, torch.compile returns a DeferredCompile; of what is no plain function, such
    as a module, the real result.
    """
    real = torch.compile

    @functools.wraps(real)
    def compile_later(model: Any = None, **settings: Any) -> Any:
        if model is None:  # as a decorator with settings
            return functools.partial(compile_later, **settings)
        if not isinstance(model, types.FunctionType):
            return real(model, **settings)
        return DeferredCompile(model, functools.partial(real, **settings))

    torch.compile = compile_later
    try:
        yield
    finally:
        torch.compile = real
