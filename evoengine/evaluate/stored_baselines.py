"""Times of baselines, kept in the cache folder: a kind of GPU measures those of a task once.

What is kept chooses the baseline of each case and is shown. Scores never use it: a verdict times
the chosen baseline beside the candidate.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from evoengine import atomic_files
from evoengine.digest import digest, digest_json
from evoengine.evaluate.child_environment import child_environment
from evoengine.protocols import BaselineTimes
from evoengine.records import TIMING_VERSION, Environment, Frozen
from evoengine.task.schema import Task

FORMAT = 1  # a new one when the meaning of a record changes
# Variables that libraries or the task's functions may read, by their beginnings; those that only
# say where something lies do not change a time.
_SETTINGS = (
    *("TORCH", "PYTORCH_", "TRITON_", "CUDA_", "CUDNN_", "CUBLAS_", "CUPY_", "NVIDIA_"),
    "EVOENGINE_",
)
_PLACES = {
    *("CUDA_VISIBLE_DEVICES", "CUDA_CACHE_PATH", "CUDA_HOME", "CUDA_PATH", "CUPY_CACHE_DIR"),
    *("NVIDIA_VISIBLE_DEVICES", "TORCHINDUCTOR_CACHE_DIR", "TORCH_HOME", "TRITON_CACHE_DIR"),
    *("TRITON_HOME", "EVOENGINE_CACHE_DIR", "EVOENGINE_CLANG"),
}


class BaselineRecord(Frozen):
    """The times of all baselines of a task, by case."""

    key: str
    measured: str  # ISO 8601, UTC
    cases: dict[str, BaselineTimes]


class StoredBaselines:
    """The records of one task below a folder, each named after all that it depends on."""

    def __init__(
        self,
        folder: Path,
        task: Task,
        references: Mapping[str, str],
        measure_anew: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`references` has the digests of the task's Python files. With `measure_anew`, what is
        there is not used, only replaced.
        """
        self._folder = folder
        self._task = task
        self._measure_anew = measure_anew
        settings = {
            name: value
            for name, value in child_environment(environ).items()
            if name.startswith(_SETTINGS) and name not in _PLACES
        }
        self._depends_on = (
            f"{FORMAT}, timing {TIMING_VERSION}",
            digest_json(task.model_dump(mode="json")),
            digest_json(dict(references)),
            digest_json(settings),
        )

    def find(self, environment: Environment) -> BaselineRecord | None:
        """The record for this GPU and these versions; None if there is none that can be used."""
        if self._measure_anew:
            return None
        key = self._key(environment)
        try:
            record = BaselineRecord.model_validate_json(self._path(key).read_bytes())
        except (OSError, ValidationError):
            return None
        return record if record.key == key and self._is_whole(record) else None

    def keep(self, environment: Environment, cases: Mapping[str, BaselineTimes]) -> tuple[str, ...]:
        """Replaces the record for this GPU; returns notices: why it could not, or should not."""
        passing = sorted({name for times in cases.values() for name in times.may_work_later})
        if passing:
            return (
                f"the times of baselines are not kept: {', '.join(passing)} may work the next time",
            )
        key = self._key(environment)
        measured = datetime.now(UTC).isoformat(timespec="seconds")
        record = BaselineRecord(key=key, measured=measured, cases=dict(cases))
        try:
            atomic_files.write_text(self._path(key), record.model_dump_json())
        except OSError as error:
            return (
                f"the times of baselines cannot be kept in {self._folder} ({error}); every run"
                " measures them again; set EVOENGINE_CACHE_DIR to a writable folder",
            )
        return ()

    def _key(self, environment: Environment) -> str:
        # the number of the GPU does not matter, its model does
        model = environment.device.partition(" ")[2]
        return digest(
            *self._depends_on,
            digest_json(environment.model_copy(update={"device": model}).model_dump(mode="json")),
        )

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _is_whole(self, record: BaselineRecord) -> bool:
        """Whether it has a time above 0 of a baseline of the task for every case."""
        return record.cases.keys() == self._task.cases.keys() and all(
            times.median_us
            and times.median_us.keys() <= self._task.baselines.keys()
            and all(0 < time_us < math.inf for time_us in times.median_us.values())
            for times in record.cases.values()
        )


def as_measured(record: BaselineRecord) -> str:
    """The notice that the times of `record` are used."""
    return (
        f"baselines as measured on {record.measured[:10]} with the same task, versions and kind of"
        " GPU; `evoengine run --measure-baselines` measures them anew"
    )
