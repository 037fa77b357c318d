"""Where the processes that import torch keep compiled Python modules.

Many containers forbid Python to keep any (PYTHONDONTWRITEBYTECODE), and have none of torch: then
each start compiles torch from source, and a grader whose baseline torch compiles, torch's compiler
as well. On one such machine that was 12 of the 22 s to the first trial of a second start.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from evoengine.evaluate.own_folder import make_own_folder

LARGEST_MODULE = "torch"


def bytecode_variables(folder: Path, module: str = LARGEST_MODULE) -> dict[str, str]:
    """The environment variables with which a process keeps compiled modules in `folder`; none where
    Python may keep them itself, or has those of `module`. An empty value takes a variable's effect
    away.

    Raises DeviceError as make_own_folder does.
    """
    if not sys.dont_write_bytecode:
        return {}
    found = importlib.util.find_spec(module)
    if found is None or found.cached is None or Path(found.cached).exists():
        return {}
    make_own_folder(folder, "compiled Python modules", "Python")
    return {"PYTHONPYCACHEPREFIX": str(folder.absolute()), "PYTHONDONTWRITEBYTECODE": ""}
