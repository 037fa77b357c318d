"""How far outputs move when inputs are rounded otherwise, as honest kernels round a scaled query or
a sum that they keep in the type of the inputs.

On large inputs the answer can be far from the error of any one implementation: where two scores of
attention nearly tie, the last bit of a query decides which value is copied. So it can in an output
of a few elements, of any size: where the terms of one nearly cancel, its relative error is that of
the terms, and no others make up for it. Of 1,600 steps of AdamW on one element, 3 refused a kernel
that rounds as NVIDIA's does, because the trusted implementation had been lucky.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from evoengine.digest import derived_seed
from evoengine.evaluate.worker.gate import Errors, Gate, compare
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.slices import SMALLEST_SLICE
from evoengine.task.draw import Draw
from evoengine.task.schema import Input, Task

# Values move by up to this many halves of a unit in the last place: more than a kernel moves them,
# because a tie that one rounding does not break another may. Of 15,000 small sets of attention, 2
# refused a kernel that rounds its queries once, both of 16 keys; with moves half as large, 7.
HALF_UNITS = 8
PAIRS = 2  # of opposite moves: one of two breaks a tie
# Inputs are too large where this moves the outputs by more, a relative RMSE in halves of a unit in
# the last place. Sums and norms move by 4 at any size, the softmax of rows by 41 to 78 and
# attention by 38 to 55 at the first factor where exp overflows; far beyond, ties alone decide.
LARGEST_MOVE = 96
COARSEST = torch.float16  # kernels that are given narrower numbers do not compute in them
NO_LIMIT = Gate(math.inf, 0.0, math.inf, math.inf)


def rounding_errors(
    task: Task,
    key: tuple[str, str, int],
    tensors: Tensors,
    reference: Tensors,
    recompute: Callable[[Tensors], Tensors],
) -> dict[str, Errors] | None:
    """The largest errors of the reference, by floating-point output, when the inputs of the set
    `key` are rounded otherwise; None where they move it too far for the set to be of use.

    `reference` holds its float64 outputs for `tensors`, and `recompute` returns them for other
    inputs. Inputs that the distribution of the set does not make larger stay as they are.
    """
    names = [name for name, spec in task.inputs.items() if name in tensors and _grows(spec)]
    floating = [
        name for name in reference if getattr(torch, task.outputs[name].dtype).is_floating_point
    ]
    if not names or not floating:
        return {}
    limit = LARGEST_MOVE * max(_half_unit(tensors[name].dtype) for name in names)
    found: dict[str, Errors] = {}
    for others in _rounded_otherwise(key, tensors, names):
        errors = _errors(recompute(others), reference, floating)
        # also where one is not a number
        if not all(error.rel_rmse <= limit and error.nan_count == 0 for error in errors.values()):
            return None
        found = {name: _larger(found.get(name), error) for name, error in errors.items()}
    return found


def errors_of_few(
    task: Task,
    key: tuple[str, str, int],
    tensors: Tensors,
    reference: Tensors,
    recompute: Callable[[Tensors], Tensors],
) -> dict[str, Errors]:
    """The same of the outputs with fewer elements than a slice has, for a set of any distribution:
    all of its floating-point inputs are rounded otherwise, as in COARSEST or a finer type, however
    far that moves the outputs. What a single element may be off by stays as it is: `max_abs` is 0.
    """
    names = [name for name, value in tensors.items() if value.is_floating_point()]
    few = [
        name
        for name, value in reference.items()
        if value.numel() < SMALLEST_SLICE
        and getattr(torch, task.outputs[name].dtype).is_floating_point
    ]
    if not names or not few:
        return {}
    found: dict[str, Errors] = {}
    for others in _rounded_otherwise(key, tensors, names, _half_unit(COARSEST)):
        errors = _errors(recompute(others), reference, few)
        found = {name: _larger(found.get(name), error) for name, error in errors.items()}
    return {name: replace(error, max_abs=0.0) for name, error in found.items()}


def _errors(moved: Tensors, reference: Tensors, names: list[str]) -> dict[str, Errors]:
    return compare(
        {name: moved[name] for name in names},
        {name: reference[name] for name in names},
        dict.fromkeys(names, NO_LIMIT),
        zero_slices=False,
    )


def _grows(spec: Input) -> bool:
    """Whether the distribution of a set makes this floating-point input large."""
    if isinstance(spec.draw, str) or not getattr(torch, spec.dtype).is_floating_point:
        return False
    return (spec.draw or Draw()).dist in (None, "triangular")


def _half_unit(dtype: torch.dtype) -> float:
    """Half a unit in the last place of 1."""
    return torch.finfo(dtype).eps / 2


def _rounded_otherwise(
    key: tuple[str, str, int], tensors: Tensors, names: list[str], most: float = math.inf
) -> Iterator[Tensors]:
    """The inputs, those of `names` in float64 and each value moved by up to HALF_UNITS halves
    of a unit in its last place, a half being no more than `most` at 1; the same ones for a key
    every time.
    """
    for number in range(PAIRS):
        wide, moves = {}, {}
        for name in names:
            value = tensors[name]
            generator = torch.Generator(device=value.device)
            generator.manual_seed(derived_seed("rounding", number, name, *key))
            share = torch.rand(
                value.shape, generator=generator, device=value.device, dtype=torch.float64
            )
            wide[name] = value.double()
            _, exponent = torch.frexp(wide[name])
            half_unit = min(most, _half_unit(value.dtype))
            half_units = torch.ldexp(torch.full_like(share, half_unit), exponent - 1)
            # 0 is 0 in every type
            moves[name] = HALF_UNITS * (2 * share - 1) * half_units * (value != 0)
        for sign in (1, -1):
            yield tensors | {name: wide[name] + sign * moves[name] for name in names}


def _larger(first: Errors | None, second: Errors) -> Errors:
    """The larger of each figure of two."""
    if first is None:
        return second
    return replace(
        second,
        max_abs=max(first.max_abs, second.max_abs),
        rel_rmse=max(first.rel_rmse, second.rel_rmse),
        slice_rel_rmse=max(first.slice_rel_rmse, second.slice_rel_rmse),
    )
