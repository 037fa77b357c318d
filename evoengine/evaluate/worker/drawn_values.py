"""The values of inputs whose task says under `draw` how they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.set_distributions import Extents, set_values
from evoengine.task.draw import Draw
from evoengine.task.drawn_ranges import DrawnRange

# integers without a draw are this many times as large as floating-point values, in 8 bits
INTEGER_FACTOR = 16
LARGEST_END = 2**63 - 1  # that torch.randint takes
# integer types of the same size, in which neighbouring numbers are neighbouring values
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Wanted:
    """One input that is to be drawn: `distribution` and `factor` are those of its set."""

    shape: Extents
    dtype: torch.dtype
    draw: Draw
    numbers: DrawnRange
    distribution: str
    factor: float
    generator: torch.Generator

    def integers(self, low: int, high: int, shape: Extents) -> torch.Tensor:
        """Int64 values, low <= value < high, each equally likely."""
        return torch.randint(
            low, high, shape, generator=self.generator, device=self.generator.device
        )

    def fractions(self) -> torch.Tensor:
        """Float64 values of the input's shape, 0 <= value < 1."""
        return torch.rand(
            self.shape, generator=self.generator, device=self.generator.device, dtype=torch.float64
        )


def drawn_values(wanted: Wanted) -> torch.Tensor:
    """The input: contiguous, of its shape and dtype, on the generator's device."""
    draw_structure = STRUCTURE_FUNCTIONS.get(wanted.draw.dist or "")
    return (draw_structure(wanted) if draw_structure else _of_set(wanted)).contiguous()


def cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Floating-point values of any shape as `dtype`: integers are in 8 bits, true is positive."""
    if dtype == torch.bool:
        return values > 0
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -128
        return (values * INTEGER_FACTOR).round().clamp(low, 127).to(dtype)
    return values.to(dtype)


def _of_set(wanted: Wanted) -> torch.Tensor:
    """Values of the distribution that the draw names, or else of that of the set."""
    distribution = wanted.distribution
    if wanted.draw.dist is not None and wanted.draw.dist not in STRUCTURE_FUNCTIONS:
        distribution = wanted.draw.dist
    values = set_values(distribution, wanted.shape, wanted.generator, wanted.factor)
    return cast(_moved(values.abs() if wanted.draw.positive else values, wanted), wanted.dtype)


def _moved(values: torch.Tensor, wanted: Wanted) -> torch.Tensor:
    """`values`, scaled and shifted as the draw says; in float64 where it says so."""
    if wanted.draw.scale is None and wanted.draw.shift is None:
        return values
    return values.double() * wanted.numbers.scale + wanted.numbers.shift


def _uniform(wanted: Wanted) -> torch.Tensor:
    low, high = wanted.numbers.low, wanted.numbers.high
    if not wanted.dtype.is_floating_point:
        return _uniform_integers(int(low), int(high), wanted)
    values = low + (high - low) * wanted.fractions()
    if wanted.draw.scale is None and wanted.draw.shift is None:
        # rounded to the dtype, a value could leave the range
        least, most = float_range(low, high, wanted.dtype)
        if least > most:
            kind = str(wanted.dtype).removeprefix("torch.")
            raise TaskError(f"{kind} has no number from {low} up to, and without, {high}")
        values = values.clamp_(least, most)
    return cast(_moved(values, wanted), wanted.dtype)


def _uniform_integers(low: int, high: int, wanted: Wanted) -> torch.Tensor:
    values = torch.randint(
        low,
        high,
        wanted.shape,
        generator=wanted.generator,
        device=wanted.generator.device,
        dtype=wanted.dtype,
    )
    return _with_ends(values, low, high - 1, wanted)


def _with_ends(values: torch.Tensor, low: int, high: int, wanted: Wanted) -> torch.Tensor:
    """`values` with both ends at two random places: a kernel must be right there, too."""
    count = values.numel()
    if count > 1:
        first = wanted.integers(0, count, ())
        second = (first + 1 + wanted.integers(0, count - 1, ())) % count
        flat = values.view(-1)
        flat[first], flat[second] = low, high
    return values


def float_range(low: float, high: float, dtype: torch.dtype) -> tuple[float, float]:
    """The least number of `dtype` that is not below `low`, and the greatest below `high`."""
    least, most = _nearest(low, dtype), _nearest(high, dtype)
    if float(least) < low:
        least = _neighbour(least, 1)
    if float(most) >= high:
        most = _neighbour(most, -1)
    return float(least), float(most)


def _nearest(value: float, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64, device="cpu").to(dtype)


def _neighbour(value: torch.Tensor, step: int) -> torch.Tensor:
    """The number of a floating dtype next above (`step` 1) or below (-1) a finite one, all of shape
    (1,).
    """
    bits = value.view(_BITS[value.element_size()])
    if float(value) == 0:
        tiny = torch.ones_like(bits).view(value.dtype)  # the smallest positive number
        return tiny * step
    return (bits + (step if float(value) > 0 else -step)).view(value.dtype)


def _probabilities(wanted: Wanted) -> torch.Tensor:
    """Exponential variables over their sum: each vector of sum 1 is equally likely."""
    generator = wanted.generator
    values = torch.empty(wanted.shape, dtype=torch.float64, device=generator.device)
    values.exponential_(generator=generator).clamp_(min=torch.finfo(torch.float64).tiny)
    kind = torch.finfo(wanted.dtype)
    # the smallest number above 0: a logarithm stays finite
    least = kind.smallest_normal * kind.eps
    return (values / values.sum(-1, keepdim=True)).clamp_(min=least).to(wanted.dtype)


def _offsets(wanted: Wanted) -> torch.Tensor:
    """Sorted random numbers with 0 and high at the ends; one that repeats another makes an empty
    bag.
    """
    count, high = wanted.shape[-1], int(wanted.numbers.high)
    values = wanted.integers(0, min(high + 1, LARGEST_END), wanted.shape).sort(-1).values
    values[..., 0], values[..., -1] = 0, high
    if count > 2:
        rows = values.view(-1, count)
        place = wanted.integers(1, count - 1, (len(rows), 1))
        # of two bags none need be empty: the boundary may stay where it is
        step = wanted.integers(-1, 2, (len(rows), 1))
        if count > 3:
            step = 2 * wanted.integers(0, 2, (len(rows), 1)) - 1
        rows.scatter_(1, place, rows.gather(1, place + step))
    return values.to(wanted.dtype)


def _permutation(wanted: Wanted) -> torch.Tensor:
    return wanted.fractions().argsort(-1).to(wanted.dtype)


def _mask(wanted: Wanted) -> torch.Tensor:
    return (wanted.fractions() < wanted.numbers.density).to(wanted.dtype)


def _one_hot(wanted: Wanted) -> torch.Tensor:
    *leading, count = wanted.shape
    values = torch.zeros(wanted.shape, dtype=wanted.dtype, device=wanted.generator.device)
    return values.scatter_(-1, wanted.integers(0, count, (*leading, 1)), 1)


def _triangular(wanted: Wanted) -> torch.Tensor:
    values = _of_set(wanted)
    return values.triu() if wanted.draw.upper else values.tril()


# by the names of task/distributions.py
STRUCTURE_FUNCTIONS: dict[str, Callable[[Wanted], torch.Tensor]] = {
    "uniform": _uniform,
    "probabilities": _probabilities,
    "offsets": _offsets,
    "permutation": _permutation,
    "mask": _mask,
    "one_hot": _one_hot,
    "triangular": _triangular,
}
