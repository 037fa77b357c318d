"""What a Python file defines, told from its text: the file is not run."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from evoengine.errors import TaskError, hint


def check_defines(path: Path, name: str, place: str) -> None:
    """Returns when the file may define `name`; raises TaskError, at `place` or with the line of a
    syntax error.

    Only a name that nothing in the file can define is refused: a star import or a function
    __getattr__ may bring any.
    """
    functions, others = _names(path)
    if not others.union(functions).isdisjoint((name, "*", "__getattr__")):
        return
    known = hint(name, functions, "it has")
    raise TaskError(f"{place}: no function {name!r} in {str(path)!r}{known}")


def _names(path: Path) -> tuple[list[str], set[str]]:
    """The functions and classes of the file, and every other name that is bound anywhere in it."""
    functions: list[str] = []
    others: set[str] = set()
    for node in ast.walk(_tree(path)):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                functions.append(name)
            case ast.Name(id=name, ctx=ast.Store()):
                others.add(name)
            case ast.alias(name=name, asname=other):
                others.add(other or name.partition(".")[0])
    return functions, others


def _tree(path: Path) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no fault here
            return ast.parse(path.read_bytes())
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error}") from None
    except SyntaxError as error:
        raise TaskError(
            f"{path}:{error.lineno or 1}:{error.offset or 1}: not Python: {error.msg}"
        ) from None
    except (ValueError, RecursionError) as error:  # a NUL character; expressions nested too deeply
        raise TaskError(f"{path}: not Python: {error}") from None
