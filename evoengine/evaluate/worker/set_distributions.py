"""The values of each distribution of an input set, before they get the input's dtype."""

from __future__ import annotations

from collections.abc import Callable

import torch

Extents = tuple[int, ...]
# Draws float32 values of a shape with a generator, on the generator's device.
DrawValues = Callable[[Extents, torch.Generator], torch.Tensor]

OUTLIER_SHARE = 1e-3
# outlier features of language models reach 20 times the typical value (LLM.int8, arXiv 2208.07339)
OUTLIER_FACTOR = 20.0
WIDE_EXPONENTS = (-4, 2)  # slices differ in scale by up to 2**6
SPIKE_FACTOR = 32.0  # scores of a spike with N(0, 1) reach 100, beyond what exp can hold
SHIFT = 8.0  # means far larger than the spread, where E[x^2] - mean^2 cancels


def set_values(
    distribution: str, shape: Extents, generator: torch.Generator, factor: float
) -> torch.Tensor:
    """Float32 values of `shape` on the generator's device; those of `extreme` are multiplied by
    `factor`.
    """
    values = DRAWING_FUNCTIONS[distribution](shape, generator)
    return values * factor if distribution == "extreme" else values


def normal(shape: Extents, generator: torch.Generator) -> torch.Tensor:
    """N(0, 1)."""
    # the dtype is given every time, because the task's own file may set another default
    return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float32)


def _outliers(shape: Extents, generator: torch.Generator) -> torch.Tensor:
    values = normal(shape, generator)
    uniform = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float32)
    return torch.where(uniform < OUTLIER_SHARE, values * OUTLIER_FACTOR, values)


def _wide(shape: Extents, generator: torch.Generator) -> torch.Tensor:
    return normal(shape, generator) * _slice_scales(shape, generator)


def _spikes(shape: Extents, generator: torch.Generator) -> torch.Tensor:
    values = normal(shape, generator)
    if len(shape) < 2:
        return values
    matrices = values.view(-1, *shape[-2:])
    rows = torch.randint(shape[-2], (len(matrices),), generator=generator, device=generator.device)
    matrices[torch.arange(len(matrices), device=rows.device), rows] *= SPIKE_FACTOR
    return values


def _shifted(shape: Extents, generator: torch.Generator) -> torch.Tensor:
    return normal(shape, generator) + SHIFT


def _slice_scales(shape: Extents, generator: torch.Generator) -> torch.Tensor:
    """A power of two for each matrix of a stack, or each row of a matrix, and 0 for the last of
    several.

    A float32 tensor that broadcasts to `shape`: its extents along matrix or row are 1.
    """
    leading = shape[:-2] if len(shape) > 2 else shape[:1] if len(shape) == 2 else ()
    low, high = WIDE_EXPONENTS
    exponents = torch.randint(
        low, high + 1, leading or (1,), generator=generator, device=generator.device
    )
    scales = torch.pow(2.0, exponents.float())
    if scales.numel() > 1:
        scales.view(-1)[-1] = 0.0
    return scales.view((*leading, *(1,) * (len(shape) - len(leading))))


# by the names of task/distributions.py
DRAWING_FUNCTIONS: dict[str, DrawValues] = {
    "normal": normal,
    "outliers": _outliers,
    "wide": _wide,
    "spikes": _spikes,
    "shifted": _shifted,
    "extreme": normal,
}
