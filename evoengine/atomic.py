"""Files that are either whole or not there."""

import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Puts `text` at `path` in one step; makes the folder where it is missing."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Puts `data` at `path` in one step: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
