"""The files of the cache folder, by kind, and their removal.

Only files with names that this program gives are counted or removed, so that nothing is lost if
the cache folder is set to a home directory by mistake. Symbolic links are never followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DAY_S = 86400.0
_DIGEST = r"[0-9a-f]{32}"
_CODE = rf"[0-9a-f]{{2}}/\.?{_DIGEST}\.(json|cubin|ptx)(\.{_DIGEST})?"
_RECORDS = rf"\.?{_DIGEST}\.json(\.\w+)?"
_ANSWERS = rf"(seeds|\.?{_DIGEST}\.(json|\w+\.npy)(\.{_DIGEST})?|tmp\w+)"


@dataclass(frozen=True)
class CacheKind:
    """One folder of the cache."""

    name: str
    what: str
    pattern: re.Pattern[str]  # of the paths of its files, within it
    # by a live run that has found them; other files may disappear during a run
    needed_later: bool


KINDS = (
    CacheKind("cubins", "machine code for GPUs", re.compile(_CODE), True),
    CacheKind("ptx", "code for the emulator", re.compile(_CODE), True),
    CacheKind(
        "emulator",
        "the emulator's own runtime",
        re.compile(rf"native-{_DIGEST}\.\w+|\.native-\w+"),
        True,
    ),
    CacheKind("headers", "headers built into NVRTC", re.compile(r"\d+\.\d+/.+", re.DOTALL), True),
    CacheKind(
        "answers", "inputs and reference outputs for the emulator", re.compile(_ANSWERS), False
    ),
    CacheKind("audits", "audits of tasks", re.compile(_RECORDS), False),
    CacheKind("baselines", "times of baselines", re.compile(_RECORDS), False),
    CacheKind(
        "baseline-code",
        "code that torch compiles for baselines",
        re.compile(r"(inductor|triton)/.+", re.DOTALL),
        True,
    ),
)


@dataclass(frozen=True)
class CacheFile:
    """One file of a kind; `used` is when it was last read or written, in seconds since 1970, if
    the file system records that.
    """

    path: Path
    bytes: int
    used: float


def find_cache_files(kind: CacheKind, cache: Path) -> list[CacheFile]:
    """The files of `kind` below the folder `cache`."""
    folder = cache / kind.name
    found = []
    for path in _walk(folder):
        if kind.pattern.fullmatch(path.relative_to(folder).as_posix()):
            try:
                state = path.lstat()
            except FileNotFoundError:  # a live run removes its oldest reference outputs
                continue
            found.append(CacheFile(path, state.st_size, max(state.st_atime, state.st_mtime)))
    return found


def remove_cache_files(kind: CacheKind, cache: Path, before: float) -> tuple[int, int]:
    """Removes the files of `kind` last used before `before`; returns their number and bytes.
    Raises OSError.
    """
    count = total = 0
    for file in find_cache_files(kind, cache):
        if file.used < before:
            file.path.unlink(missing_ok=True)
            count, total = count + 1, total + file.bytes
    if kind.needed_later:  # no run is live, so nothing writes there; the others have no subfolders
        _remove_empty(cache / kind.name)
    return count, total


def _walk(folder: Path) -> Iterator[Path]:
    """All files below `folder`, including links; linked folders are not entered."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for place, _, names in os.walk(folder, followlinks=False):
        yield from (Path(place) / name for name in names)


def _remove_empty(folder: Path) -> None:
    if folder.is_symlink():
        return
    for place, _, _ in os.walk(folder, topdown=False, followlinks=False):
        if not any(Path(place).iterdir()):
            Path(place).rmdir()
