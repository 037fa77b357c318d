"""The input sets of each case on the emulator, with seeds that nobody can know.

All seeds come from one secret, which is drawn once for a cache folder and stays there: references
take minutes of a CPU, so they are kept as long as the secret. A candidate cannot read it, because
its code reaches only its own reservation of memory.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evoengine.digest import digest
from evoengine.errors import DeviceError
from evoengine.task.schema import Task

SECRET_BYTES = 16
SEED_DIGITS = 15  # hexadecimal, of each set: 60 bits
SEEDS_FILE = "seeds"


@dataclass(frozen=True)
class SecretSet:
    """One input set of a case; `number` counts within the case. Its seed is never shown."""

    number: int
    distribution: str
    seed: int


def secret_sets(task: Task, case: str, secret: str) -> tuple[SecretSet, ...]:
    """As few sets as use every distribution, but as many as the task has seeds: a launch takes as
    long as the rest of a verdict.
    """
    distributions = task.distributions
    return tuple(
        SecretSet(
            number,
            distributions[number % len(distributions)],
            int(digest(secret, case, str(number))[:SEED_DIGITS], 16),
        )
        for number in range(max(len(distributions), len(task.seeds)))
    )


def read_secret(folder: Path) -> str:
    """The secret of a cache folder, drawn if there is none; raises DeviceError.

    Processes that start at the same time read the same one.
    """
    path = folder / SEEDS_FILE
    try:
        if not path.exists():
            _draw(path)
        os.utime(path)  # as old as the last start, so that references are not older
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(
            f"the seeds of inputs cannot be kept in {folder}: {error}; set EVOENGINE_CACHE_DIR to a"
            " folder that can be written"
        ) from error


def _draw(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:
        file.write(secrets.token_hex(SECRET_BYTES))
        file.flush()
        try:
            os.link(file.name, path)  # fails where another process was faster
        except FileExistsError:
            return
