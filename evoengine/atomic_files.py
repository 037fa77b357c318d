"""Writes files atomically: a reader sees a complete file or none."""

from pathlib import Path
from uuid import uuid4


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` atomically; creates missing folders."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes `data` to `path` atomically: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # not with tempfile, whose files other users cannot read
    part = path.with_name(f".{path.name[:100]}.{uuid4().hex}")
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
