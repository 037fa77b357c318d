"""The folders in which torch and Triton keep the code that they compile for baselines.

torch unpickles what it finds there, so it must be this user's alone.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

from evoengine.evaluate.own_folder import make_own_folder

# the variable that a library reads -> our subfolder for it
_SUBFOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


def use_code_folder(folder: Path, environ: MutableMapping[str, str] = os.environ) -> None:
    """Lets torch and Triton keep code below `folder`, unless `environ` names other folders.

    Call it before either compiles. Raises DeviceError as make_own_folder does.
    """
    missing = [name for name in _SUBFOLDERS if not environ.get(name)]
    if not missing:
        return
    make_own_folder(folder, "code of baselines", "torch")
    for name in missing:
        environ[name] = str(folder.absolute() / _SUBFOLDERS[name])


def forget_code_folders(environ: MutableMapping[str, str] = os.environ) -> None:
    """Removes the names of these folders: a process that runs candidates compiles nothing."""
    for name in _SUBFOLDERS:
        environ.pop(name, None)
