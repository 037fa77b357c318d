"""Input tensors made on the device from case, distribution and seed; the same ones every time."""

from __future__ import annotations

import torch

from evoengine.digest import derived_seed
from evoengine.task import expression
from evoengine.task.expression import Value
from evoengine.task.schema import Task, shape_of

Tensors = dict[str, torch.Tensor]
InputSet = tuple[str, int]  # distribution, seed

OUTLIER_SHARE = 1e-3
# outlier features of language models reach 20 times the typical value (LLM.int8, arXiv 2208.07339)
OUTLIER_FACTOR = 20.0
WIDE_EXPONENTS = (-4, 2)  # slices differ in scale by up to 2**6
SHIFT = 8.0  # means far larger than the spread, where E[x^2] - mean^2 cancels


def all_sets(task: Task) -> tuple[InputSet, ...]:
    """Every seed of every distribution."""
    return tuple((distribution, seed) for distribution in task.distributions for seed in task.seeds)


def paired_sets(task: Task) -> tuple[InputSet, ...]:
    """Seeds and distributions in turn, until every one of both was used: for devices on which all
    pairs would take too long.
    """
    distributions, seeds = task.distributions, task.seeds
    count = max(len(distributions), len(seeds))
    return tuple(
        (distributions[number % len(distributions)], seeds[number % len(seeds)])
        for number in range(count)
    )


def make_inputs(
    task: Task, case: str, distribution: str, seed: int, device: torch.device
) -> Tensors:
    """Every tensor input of `case`, contiguous, on `device`."""
    tensors = {}
    for name, spec in task.inputs.items():
        if spec.shape is None:
            continue
        generator = torch.Generator(device=device)
        generator.manual_seed(derived_seed(case, name, distribution, seed))
        shape = shape_of(spec.shape, task.scope(case))
        values = _draw(distribution, shape, generator, device)
        tensors[name] = _cast(values, getattr(torch, spec.dtype))
    return tensors


def scalar_inputs(task: Task, case: str) -> dict[str, Value]:
    """The scalar inputs, dimensions and flags of `case`."""
    scope = task.scope(case)
    scalars = {
        name: expression.parse(spec.value).evaluate(scope)
        for name, spec in task.inputs.items()
        if spec.value is not None
    }
    return {**scope, **scalars}


def _draw(
    distribution: str, shape: tuple[int, ...], generator: torch.Generator, device: torch.device
) -> torch.Tensor:
    single = torch.float32  # said each time: the task's own file may set another default
    values = torch.randn(shape, generator=generator, device=device, dtype=single)
    if distribution == "outliers":
        picked = torch.rand(shape, generator=generator, device=device, dtype=single) < OUTLIER_SHARE
        return torch.where(picked, values * OUTLIER_FACTOR, values)
    if distribution == "wide":
        return values * _slice_scales(shape, generator, device)
    if distribution == "shifted":
        return values + SHIFT
    return values


def _slice_scales(
    shape: tuple[int, ...], generator: torch.Generator, device: torch.device
) -> torch.Tensor:
    """A power of two for every matrix of a stack (for every row of a matrix), and 0 for the last
    one of several.
    """
    leading = shape[:-2] if len(shape) > 2 else shape[:1] if len(shape) == 2 else ()
    low, high = WIDE_EXPONENTS
    exponents = torch.randint(low, high + 1, leading or (1,), generator=generator, device=device)
    scales = torch.pow(2.0, exponents.float())
    if scales.numel() > 1:
        scales.view(-1)[-1] = 0.0
    return scales.view(*leading, *(1,) * (len(shape) - len(leading))) if leading else scales


def _cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        return values > 0
    if not dtype.is_floating_point:
        return (values * 16).round().clamp(0 if dtype == torch.uint8 else -128, 127).to(dtype)
    return values.to(dtype)
