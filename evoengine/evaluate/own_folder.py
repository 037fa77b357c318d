"""A folder with code that our processes run: nobody else may write into it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evoengine.errors import DeviceError


def make_own_folder(folder: Path, content: str, runs: str) -> None:
    """Makes `folder` for this user alone; `content` says what is kept in it, `runs` who runs that.

    Raises DeviceError where it cannot be made or others may write into it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise DeviceError(
            f"{content} cannot be kept in {folder}: {error}; set EVOENGINE_CACHE_DIR to a folder"
            " with room"
        ) from error
    # root may be in a container into which the folder of a user outside is mounted
    is_foreign = os.geteuid() not in (0, found.st_uid)
    if is_foreign or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DeviceError(
            f"{folder} can be written by other users (owner {found.st_uid}, mode"
            f" {stat.S_IMODE(found.st_mode):o}), and {runs} runs the code that it finds there:"
            " remove the folder"
        )
