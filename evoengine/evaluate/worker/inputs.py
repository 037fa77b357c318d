"""Input tensors, drawn on the device from case, distribution and seed; the same every time."""

from __future__ import annotations

from collections.abc import Callable

import torch

from evoengine.digest import derived_seed
from evoengine.errors import TaskError
from evoengine.evaluate.worker.drawn_values import Wanted, drawn_values
from evoengine.evaluate.worker.set_distributions import Extents
from evoengine.task import expression
from evoengine.task.distributions import LARGEST_FACTOR
from evoengine.task.draw import Draw
from evoengine.task.drawn_ranges import range_of
from evoengine.task.expression import Value
from evoengine.task.schema import Task, shape_of

Tensors = dict[str, torch.Tensor]  # by the name of an input or output of the task
# Draws an input with the function that its task names: input, case, distribution, shape, and what
# makes a new generator with the seed of this input.
DrawByFunction = Callable[[str, str, str, Extents, Callable[[], torch.Generator]], torch.Tensor]


def make_inputs(
    task: Task,
    case: str,
    distribution: str,
    seed: int,
    device: torch.device,
    factor: float = LARGEST_FACTOR,
    by_function: DrawByFunction | None = None,
) -> Tensors:
    """The tensor inputs of `case` by name, contiguous, on `device`.

    Each has the shape and dtype that the task file gives it for this case. `factor` is that of the
    distribution `extreme`. A task with functions that draw needs `by_function`. Raises TaskError
    where such a function fails or an input is not finite.
    """
    tensors = {}
    for name, spec in task.inputs.items():
        if spec.shape is None:
            continue

        def generator(name: str = name) -> torch.Generator:
            made = torch.Generator(device=device)
            return made.manual_seed(derived_seed(case, name, distribution, seed))

        shape = shape_of(spec.shape, task.scope(case))
        if isinstance(spec.draw, str):
            if by_function is None:
                raise ValueError(f"{name} is drawn by {spec.draw}, which was not given")
            tensors[name] = by_function(name, case, distribution, shape, generator)
            continue
        draw = spec.draw or Draw()
        numbers = range_of(draw, task.scope(case))
        dtype = getattr(torch, spec.dtype)
        wanted = Wanted(shape, dtype, draw, numbers, distribution, factor, generator())
        try:
            values = drawn_values(wanted)
        except TaskError as error:
            raise TaskError(f"input {name}: {error} for case {case}") from None
        _refuse_infinite(name, draw, values, f"case {case}, distribution {distribution}")
        tensors[name] = values
    return tensors


def _refuse_infinite(name: str, draw: Draw, values: torch.Tensor, where: str) -> None:
    """Raises TaskError where `scale` or `shift` brought values beyond the dtype; nothing else
    does.
    """
    moved = draw.scale is not None or draw.shift is not None
    if moved and not bool(values.isfinite().all()):
        raise TaskError(
            f"input {name} is not finite for {where}: expected a scale and shift with which"
            f" {str(values.dtype).removeprefix('torch.')} holds the values"
        )


def scalar_inputs(task: Task, case: str) -> dict[str, Value]:
    """The scalar inputs, dimensions and flags of `case` by name: int, float or bool."""
    scope = task.scope(case)
    scalars = {
        name: expression.parse(spec.value).evaluate(scope)
        for name, spec in task.inputs.items()
        if spec.value is not None
    }
    return {**scope, **scalars}
