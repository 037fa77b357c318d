"""A multiple of one input added to another, as a decay that is added to the gradient."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import torch

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs, one_input
from evoengine.evaluate.worker.inputs import Tensors

MOST = 300


def coupled_inputs(inputs: Tensors, scalars: Mapping[str, object]) -> Iterator[ChangedInputs]:
    """Every floating input with a scalar times another one of its shape added or subtracted."""
    yield from itertools.islice(_all(inputs, scalars), MOST)


def _added(more: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    return given + more


def _all(inputs: Tensors, scalars: Mapping[str, object]) -> Iterator[ChangedInputs]:
    numbers = {
        name: float(value)
        for name, value in scalars.items()
        if isinstance(value, float) and value != 0
    }
    for scalar, value in numbers.items():
        for name, other in itertools.permutations(inputs, 2):
            one, two = inputs[name], inputs[other]
            if one.shape != two.shape or not one.is_floating_point() or one.dtype != two.dtype:
                continue
            for sign, done, factor in (("+", "added to", value), ("-", "subtracted from", -value)):
                plain = one_input(
                    name,
                    f"{name} {sign} {scalar} * {other} in place of {name}",
                    partial(_added, factor * two),
                    1.02,
                    f"{scalar} * {other} is {done} {name}, coupled",
                )
                yield plain
                yield replace(
                    plain,
                    words=f"{plain.words} and {scalar} left out elsewhere (as if 0)",
                    scalars={scalar: 0.0},
                    mistake=f"{plain.mistake}, and not applied where it belongs",
                )
