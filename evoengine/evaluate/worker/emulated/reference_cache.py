"""Inputs and expected outputs cached on disk: computing them takes minutes of a CPU.

Their names are digests of all that they depend on: the Python files beside the task, the task's
tensors, tiers and cases, torch's version, and our own code that makes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import torch

from evoengine.digest import digest, digest_json
from evoengine.evaluate.worker import (
    drawing_functions,
    drawn_values,
    expected_outputs,
    gate,
    input_rounding,
    inputs,
    largest_factor,
    output_errors,
    returned_values,
    set_distributions,
    slices,
    task_functions,
)
from evoengine.evaluate.worker.emulated.array_cache import Array, ArrayCache, CachedArrays
from evoengine.evaluate.worker.expected_outputs import ExpectedOutput, Key
from evoengine.evaluate.worker.gate import Errors, Gate
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import Frozen
from evoengine.task import distributions, drawn_ranges
from evoengine.task.schema import Task, Tier, shape_of

# our own code that makes them
OURS = (
    distributions,
    drawing_functions,
    drawn_ranges,
    drawn_values,
    expected_outputs,
    gate,
    input_rounding,
    inputs,
    largest_factor,
    output_errors,
    returned_values,
    set_distributions,
    slices,
    task_functions,
    Tier,
)


class _Facts(Frozen):
    """The part of an ExpectedOutput that is not arrays."""

    trusted: dict[str, dict[str, Errors]]  # by tier and output
    gates: dict[str, dict[str, Gate]]
    factor: float


def _digest(what: str, task: Task, task_path: Path) -> str:
    """The digest of all that inputs and expected outputs of a task depend on."""
    described = task.model_dump(
        mode="json",
        # the first seed draws the set that says where the search for a factor begins
        include={
            "reference",
            "dims",
            "inputs",
            "outputs",
            "cases",
            "hidden_cases",
            "tiers",
            "seeds",
        },
    )
    folder = task_path.parent
    named = {folder / name.split(":")[0] for name in task.functions.values()}
    files = sorted({*folder.glob("*.py"), *(path for path in named if path.is_file())})
    contents = [path.read_bytes() for path in files]
    ours = [inspect.getsource(part) for part in OURS]
    return digest(what, digest_json(described), torch.__version__, *ours, *contents)


class DiskOutputCache:
    """Implements expected_outputs.OutputCache for one task."""

    def __init__(self, arrays: ArrayCache, task: Task, task_path: Path) -> None:
        self._arrays = arrays
        self._digest = _digest("answers", task, task_path)

    def __call__(self, key: Key, make: Callable[[], ExpectedOutput]) -> ExpectedOutput:
        name = digest(self._digest, *map(str, key))
        found = self._arrays.read(name)
        if found is None:
            expected = make()
            facts = _Facts(
                trusted=expected.trusted, gates=expected.gates, factor=expected.factor
            ).model_dump_json()
            found = self._arrays.write(
                name,
                CachedArrays(
                    {output: value.numpy() for output, value in expected.reference.items()}, facts
                ),
            )
        facts_found = _Facts.model_validate_json(found.facts)
        return ExpectedOutput(
            {output: torch.from_numpy(array) for output, array in found.arrays.items()},
            facts_found.trusted,
            facts_found.gates,
            facts_found.factor,
        )


class DiskInputCache:
    """Implements expected_outputs.InputCache for one task."""

    def __init__(self, arrays: ArrayCache, task: Task, task_path: Path) -> None:
        self._arrays = arrays
        self._task = task
        # an input may depend on a function of the task, and those that are extreme on the outputs
        self._digest = _digest("inputs", task, task_path)

    def __call__(self, key: Key, make: Callable[[], Tensors]) -> Tensors:
        name = digest(self._digest, *map(str, key))
        found = self._arrays.read(name) or self._arrays.write(
            name, CachedArrays({of: _bytes(value) for of, value in make().items()})
        )
        return {
            of: self._tensor(of, key[0], torch.from_numpy(array))
            for of, array in found.arrays.items()
        }

    def _tensor(self, name: str, case: str, flat: torch.Tensor) -> torch.Tensor:
        spec = self._task.inputs[name]
        assert spec.shape is not None  # scalars are not cached
        return flat.view(getattr(torch, spec.dtype)).view(
            shape_of(spec.shape, self._task.scope(case))
        )


def _bytes(value: torch.Tensor) -> Array:
    """The bytes of a contiguous tensor, shape (bytes,), uint8: numpy has no bfloat16."""
    return value.view(-1).view(torch.uint8).numpy()
