"""A cache of named arrays on disk, mapped into memory: workers share the pages.

Candidates cannot read them: on the emulator, their code reaches only its own reservation of memory.
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
from evoengine.evaluate.worker.emulated.secret_sets import SEEDS_FILE
from evoengine.records import Frozen

# on disk, for all tasks together; the largest packaged task takes 0.4 GiB
LIMIT_BYTES = 4 * 1024**3

# Changed kernels are launched by the hundred on one input set, whose files take longer to open than
# such a launch.
MOST_MAPPED = 8

Array = numpy.ndarray[Any, Any]


class _Entry(Frozen):
    """The JSON file beside the arrays of one name."""

    checksums: dict[str, int]  # CRC-32 of each array's bytes
    facts: str


@dataclass(frozen=True)
class CachedArrays:
    """Arrays by name, of any shape and dtype, on the host, with text about them for the caller."""

    arrays: dict[str, Array]
    facts: str = ""


class ArrayCache:
    """A folder of arrays that any number of processes share; the oldest are deleted above
    LIMIT_BYTES.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._verified: set[str] = set()  # names whose checksums this process has compared
        self._mapped: dict[str, CachedArrays] = {}  # the last ones by name

    def read(self, name: str) -> CachedArrays | None:
        """The arrays of `name`, mapped copy-on-write; None where they are missing or damaged."""
        found = self._mapped.pop(name, None) or self._map(name)
        if found is not None:
            self._mapped[name] = found
        if len(self._mapped) > MOST_MAPPED:
            del self._mapped[next(iter(self._mapped))]
        return found

    def _map(self, name: str) -> CachedArrays | None:
        try:
            entry = _Entry.model_validate_json((self.folder / f"{name}.json").read_bytes())
            # copy-on-write, because torch refuses read-only arrays; nothing is ever written
            arrays = {
                key: numpy.load(self._array(name, key), mmap_mode="c", allow_pickle=False)
                for key in entry.checksums
            }
        except (OSError, ValueError, ValidationError):
            return None
        if name not in self._verified:
            if any(_checksum(array) != entry.checksums[key] for key, array in arrays.items()):
                return None
            self._verified.add(name)
        return CachedArrays(arrays, entry.facts)

    def write(self, name: str, cached: CachedArrays) -> CachedArrays:
        """The same arrays, mapped from the disk; raises DeviceError where it cannot write them."""
        try:
            self._write(name, cached)
            self._delete_oldest()
        except OSError as error:
            raise DeviceError(
                f"inputs and references cannot be kept in {self.folder}: {error}; set"
                " EVOENGINE_CACHE_DIR to a folder with room"
            ) from error
        # another process may have deleted it again for lack of room
        return self.read(name) or cached

    def _write(self, name: str, cached: CachedArrays) -> None:
        """Writes atomically for other processes; checksums detect what a machine's crash leaves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for key, array in cached.arrays.items():
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                numpy.save(file, array, allow_pickle=False)
            Path(file.name).replace(self._array(name, key))
        entry = _Entry(
            checksums={key: _checksum(array) for key, array in cached.arrays.items()},
            facts=cached.facts,
        )
        # last, because a process that finds this file reads the arrays
        atomic_files.write_text(self.folder / f"{name}.json", entry.model_dump_json())

    def _delete_oldest(self) -> None:
        """Deletes the oldest files above LIMIT_BYTES; processes that mapped one keep its pages."""
        files = []
        for path in self.folder.iterdir():
            try:
                found = path.stat()
            except FileNotFoundError:  # another process deletes, too
                continue
            if path.name != SEEDS_FILE:  # all arrays are useless without it
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
