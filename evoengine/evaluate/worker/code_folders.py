"""The folders in which torch and Triton keep the code that they compile for baselines.

torch unpickles what it finds there, so it must be this user's alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import MutableMapping
from pathlib import Path

from evoengine.errors import DeviceError

# the variable that a library reads -> our subfolder for it
_SUBFOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


def use_code_folder(folder: Path, environ: MutableMapping[str, str] = os.environ) -> None:
    """Lets torch and Triton keep code below `folder`, unless `environ` names other folders.

    Call it before either compiles. Raises DeviceError where `folder` cannot be made or others may
    write into it.
    """
    missing = [name for name in _SUBFOLDERS if not environ.get(name)]
    if not missing:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise DeviceError(
            f"code of baselines cannot be kept in {folder}: {error}; set EVOENGINE_CACHE_DIR to a"
            " folder with room"
        ) from error
    # root may be in a container into which the folder of a user outside is mounted
    is_foreign = os.geteuid() not in (0, found.st_uid)
    if is_foreign or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DeviceError(
            f"{folder} can be written by other users (owner {found.st_uid}, mode"
            f" {stat.S_IMODE(found.st_mode):o}), and torch runs the code that it finds there:"
            " remove the folder"
        )
    for name in missing:
        environ[name] = str(folder.absolute() / _SUBFOLDERS[name])


def forget_code_folders(environ: MutableMapping[str, str] = os.environ) -> None:
    """Removes the names of these folders: a process that runs candidates compiles nothing."""
    for name in _SUBFOLDERS:
        environ.pop(name, None)
