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

Compile = Callable[..., Any]


@contextmanager
def deferred_compile() -> Iterator[None]:
    """While it lasts, torch.compile returns functions that call the real one when they are first
    called; of what is no plain function, such as a module, the real result.
    """
    real = torch.compile

    @functools.wraps(real)
    def compile_later(model: Any = None, **settings: Any) -> Any:
        if model is None:  # as a decorator with settings
            return functools.partial(compile_later, **settings)
        if not isinstance(model, types.FunctionType):
            return real(model, **settings)
        return _compiled_by_call(model, functools.partial(real, model, **settings))

    torch.compile = compile_later
    try:
        yield
    finally:
        torch.compile = real


def _compiled_by_call(function: Callable[..., Any], compile_now: Compile) -> Callable[..., Any]:
    compiled = functools.cache(compile_now)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return compiled()(*arguments, **named)

    return call
