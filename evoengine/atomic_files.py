"""Files that are either whole or not there."""

from pathlib import Path
from uuid import uuid4


def write_text(path: Path, text: str) -> None:
    """Puts `text` at `path` in one step; makes the folder where it is missing."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Puts `data` at `path` in one step: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # not by tempfile: its files are closed to other users
    part = path.with_name(f".{path.name[:100]}.{uuid4().hex}")
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
