"""Answers kept on disk: computing them takes minutes of a CPU, and workers come and go.

They are named after all that they follow from: the Python files beside the task, what the task says of tensors, tiers
and the case, the release of torch.

Candidates cannot reach them: on the emulator their code sees nothing but its own reservation of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

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

    outputs: tuple[str, ...]
    trusted: dict[str, Errors]
    gates: dict[str, Gate]


class KeptAnswers:
    """Answers of one task below a folder; arrays are mapped, not read, so that they cost a worker no memory of its own."""

    def __init__(self, folder: Path, task: Task, task_path: Path) -> None:
        self.folder = folder
        self._meaning = _meaning(task, task_path)

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
        return Answer({output: torch.from_numpy(array) for output, array in arrays.items()}, entry.trusted, entry.gates)

    def _write(self, name: str, answer: Answer) -> None:
        for output, value in answer.reference.items():
            data = BytesIO()
            numpy.save(data, value.numpy(), allow_pickle=False)
            atomic.write_bytes(self._array(name, output), data.getvalue())
        entry = _Entry(outputs=tuple(answer.reference), trusted=answer.trusted, gates=answer.gates)
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


def _meaning(task: Task, task_path: Path) -> str:
    """Changes with all that an answer follows from, but case, distribution and seed."""
    files = sorted(task_path.parent.glob("*.py"))
    parts = task.model_dump(mode="json", include={"reference", "dims", "inputs", "outputs", "cases", "hidden_cases", "tiers"})
    return digest(digest_json(parts), torch.__version__, *(path.read_bytes() for path in files))
