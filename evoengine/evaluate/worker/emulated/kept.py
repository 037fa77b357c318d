"""Answers kept on disk: computing them takes minutes of a CPU, and workers come and go.

They are named after all that they follow from: the Python files beside the task, what the task says of tensors, tiers
and the case, the release of torch.

Candidates cannot reach them: on the emulator their code sees nothing but its own reservation of memory.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch
from pydantic import ValidationError

from evoengine import atomic
from evoengine.digest import digest, digest_json
from evoengine.errors import DeviceError
from evoengine.evaluate.worker.answers import Answer, Key
from evoengine.evaluate.worker.gate import Errors, Gate
from evoengine.records import Frozen
from evoengine.task import Task

LIMIT_BYTES = 4 * 1024**3  # on disk, over all tasks; those of the largest packaged task take 0.6 GiB


class _Entry(Frozen):
    """What stands beside the arrays of one answer."""

    outputs: dict[str, int]  # the checksum of each array
    trusted: dict[str, Errors]
    gates: dict[str, Gate]


class KeptAnswers:
    """Answers of one task below a folder; arrays are mapped, not read, so that they cost a worker no memory of its own."""

    def __init__(self, folder: Path, task: Task, task_path: Path) -> None:
        self.folder = folder
        self._meaning = _meaning(task, task_path)
        self._sound: set[str] = set()  # whose checksums this process has seen to be right

    def __call__(self, key: Key, make: Callable[[], Answer]) -> Answer:
        """The answer of `key`, made where it is not kept."""
        name = digest(self._meaning, *map(str, key))
        found = self._read(name)
        if found is None:
            answer = make()
            try:
                self._write(name, answer)
                self._forget_the_oldest()
            except OSError as error:
                raise DeviceError(
                    f"references cannot be kept in {self.folder}: {error}; set EVOENGINE_CACHE_DIR to a folder with room"
                ) from error
            found = self._read(name)
            if found is None:
                raise OSError(f"{self.folder}: an answer that was just written there cannot be read")
        return found

    def _read(self, name: str) -> Answer | None:
        try:
            entry = _Entry.model_validate_json((self.folder / f"{name}.json").read_bytes())
            # Copy on write: torch takes no read-only arrays, and nothing is ever written.
            arrays = {output: numpy.load(self._array(name, output), mmap_mode="c", allow_pickle=False) for output in entry.outputs}
        except (OSError, ValueError, ValidationError):
            return None
        if name not in self._sound:
            if any(_checksum(array) != entry.outputs[output] for output, array in arrays.items()):
                return None
            self._sound.add(name)
        return Answer({output: torch.from_numpy(array) for output, array in arrays.items()}, entry.trusted, entry.gates)

    def _write(self, name: str, answer: Answer) -> None:
        """Whole or not at all for other processes; the machine's own end may leave rubbish, which the checksum tells."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {output: value.numpy() for output, value in answer.reference.items()}
        for output, array in arrays.items():
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                numpy.save(file, array, allow_pickle=False)
            Path(file.name).replace(self._array(name, output))
        checksums = {output: _checksum(array) for output, array in arrays.items()}
        entry = _Entry(outputs=checksums, trusted=answer.trusted, gates=answer.gates)
        atomic.write_text(self.folder / f"{name}.json", entry.model_dump_json())  # last: whoever finds it finds the arrays

    def _forget_the_oldest(self) -> None:
        """A file that another process has mapped stays with it until it ends."""
        files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in self.folder.iterdir() if path.is_file())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= LIMIT_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _array(self, name: str, output: str) -> Path:
        return self.folder / f"{name}.{output}.npy"


def _checksum(array: numpy.ndarray[Any, Any]) -> int:
    return zlib.crc32(numpy.ascontiguousarray(array).data)


def _meaning(task: Task, task_path: Path) -> str:
    """Changes with all that an answer follows from, but case, distribution and seed."""
    files = sorted(task_path.parent.glob("*.py"))
    parts = task.model_dump(mode="json", include={"reference", "dims", "inputs", "outputs", "cases", "hidden_cases", "tiers"})
    return digest(digest_json(parts), torch.__version__, *(path.read_bytes() for path in files))
