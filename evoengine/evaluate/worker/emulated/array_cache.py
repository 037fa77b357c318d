"""Named arrays kept on disk and mapped into memory, so that they cost a worker no memory of its
own.

Candidates cannot reach them: on the emulator their code sees nothing but its own reservation of
memory.
"""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from pydantic import ValidationError

from evoengine import atomic_files
from evoengine.errors import DeviceError
from evoengine.records import Frozen

# on disk, over all tasks; those of the largest packaged task take 0.4 GiB
LIMIT_BYTES = 4 * 1024**3

Array = numpy.ndarray[Any, Any]


class _Entry(Frozen):
    """What stands beside the arrays of one name."""

    checksums: dict[str, int]
    facts: str


@dataclass(frozen=True)
class CachedArrays:
    """Arrays with what the one who keeps them wants to know about them."""

    arrays: dict[str, Array]
    facts: str = ""


class ArrayCache:
    """A folder of arrays, shared by any number of processes; the oldest are forgotten when there
    are too many.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sound: set[str] = set()  # whose checksums this process has seen to be right

    def read(self, name: str) -> CachedArrays | None:
        """What is kept under `name`; None where that is nothing, or damaged."""
        try:
            entry = _Entry.model_validate_json((self.folder / f"{name}.json").read_bytes())
            # Copy on write: torch takes no read-only arrays, and nothing is ever written.
            arrays = {
                key: numpy.load(self._array(name, key), mmap_mode="c", allow_pickle=False)
                for key in entry.checksums
            }
        except (OSError, ValueError, ValidationError):
            return None
        if name not in self._sound:
            if any(_checksum(array) != entry.checksums[key] for key, array in arrays.items()):
                return None
            self._sound.add(name)
        return CachedArrays(arrays, entry.facts)

    def write(self, name: str, kept: CachedArrays) -> CachedArrays:
        """The same, as it is now mapped from the disk; raises DeviceError where the folder takes no
        more.
        """
        try:
            self._write(name, kept)
            self._forget_the_oldest()
        except OSError as error:
            raise DeviceError(
                f"inputs and references cannot be kept in {self.folder}: {error}; set"
                " EVOENGINE_CACHE_DIR to a folder with room"
            ) from error
        return self.read(name) or kept  # of another process that keeps more than there is room for

    def _write(self, name: str, kept: CachedArrays) -> None:
        """Whole or not at all for other processes; the machine's own end may leave rubbish, which
        the checksum tells.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, array in kept.arrays.items():
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                numpy.save(file, array, allow_pickle=False)
            Path(file.name).replace(self._array(name, key))
        entry = _Entry(
            checksums={key: _checksum(array) for key, array in kept.arrays.items()},
            facts=kept.facts,
        )
        # last: whoever finds it finds the arrays
        atomic_files.write_text(self.folder / f"{name}.json", entry.model_dump_json())

    def _forget_the_oldest(self) -> None:
        """A file that another process has mapped stays with it until it ends."""
        files = []
        for path in self.folder.iterdir():
            try:
                found = path.stat()
            except FileNotFoundError:  # another process forgets, too
                continue
            files.append((found.st_mtime, found.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= LIMIT_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _array(self, name: str, key: str) -> Path:
        return self.folder / f"{name}.{key}.npy"


def _checksum(array: Array) -> int:
    return zlib.crc32(numpy.ascontiguousarray(array).data)
