"""Readable files, and folders of them that are replaced as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from evoengine import atomic_files


def write_file(path: Path, text: str) -> None:
    """Writes `text` to `path` atomically; half a surrogate pair, which a reply can hold but UTF-8
    cannot encode, becomes a question mark.
    """
    atomic_files.write_bytes(path, text.encode("utf-8", "replace"))


def replace_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Makes `folder` hold exactly `files`: a reader sees all the old ones or all the new ones."""
    fresh, stale = _beside(folder, "new"), _beside(folder, "old")
    for left_over in (fresh, stale):
        remove_path(left_over)
    for name, text in files.items():
        write_file(fresh / name, text)
    if folder.exists() or folder.is_symlink():
        folder.replace(stale)
    fresh.replace(folder)
    remove_path(stale)


def remove_path(path: Path) -> None:
    """Removes the file, folder or link at `path`, never the target of a link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def _beside(folder: Path, word: str) -> Path:
    return folder.with_name(f".{folder.name}.{word}")
