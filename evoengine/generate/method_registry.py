"""The methods of search by name: what `--method` takes.

A new method is a module of `methods/` with a `METHOD`, and one line in `MODULES`. Nothing is
imported before it is asked for: the help of the command line must be quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from evoengine.errors import UsageError, hint

if TYPE_CHECKING:
    from evoengine.generate.method import Method

# name -> the module that has it
MODULES = {
    "free": "evoengine.generate.methods.free",
    "insight": "evoengine.generate.methods.insight",
    "full": "evoengine.generate.methods.full",
    "best_of_n": "evoengine.generate.methods.best_of_n",
    "islands": "evoengine.generate.methods.islands",
}

WITHOUT_LESSONS = ("free", "best_of_n")  # methods whose prompts show no lessons
# what those do that change their prompts on a plateau, for the progress
ON_PLATEAU = {"full": "half of the prompts ask for new designs until the next gain"}


def method_of(name: str) -> Method:
    """The method called `name`; raises UsageError for an unknown one."""
    if name not in MODULES:
        raise UsageError(f"no method {name!r}{hint(name, MODULES)}")
    return cast("Method", import_module(MODULES[name]).METHOD)
