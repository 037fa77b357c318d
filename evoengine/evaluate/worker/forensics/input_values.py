"""Inputs whose values are taken wrongly: as 0 or 1, negated, squared, clipped."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from evoengine.evaluate.worker.forensics.changed_input import (
    Change,
    ChangedInputs,
    each_input,
    one_input,
)
from evoengine.records import DiagnosisKind


def of_other_values(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """One input inverted, left out, negated, squared, doubled, clipped, or with its scale kept."""
    if value.dtype == torch.bool:
        masks: tuple[tuple[str, Change, str], ...] = (
            (f"{name} inverted", torch.logical_not, f"{name} is inverted"),
            (f"{name} left out", torch.ones_like, f"{name} is missing"),
            (f"nothing of {name}", torch.zeros_like, ""),
        )
        for words, change, mistake in masks:
            made = each_input((name,), change)
            yield ChangedInputs(DiagnosisKind.mask, words, made, mistake=mistake)
        return
    if not value.is_floating_point():
        most, least = int(value.max()), int(value.min())
        for step in (1, -1):
            words = f"{name} {'+' if step > 0 else '-'} 1 in place of {name}"
            mistake = f"{name} is off by one"
            yield one_input(
                name,
                words,
                lambda x, s=step: (x + s).clamp(least, most),  # type: ignore[misc]
                1.0,
                mistake,
            )
        yield one_input(name, f"{name} as if all 0", torch.zeros_like)
        return
    named: dict[str, tuple[Change, str]] = {
        f"{name} as if 0": (torch.zeros_like, f"{name} is missing"),
        f"{name} as if 1": (torch.ones_like, f"{name} is missing"),
        f"-{name} in place of {name}": (torch.neg, f"{name} has the wrong sign"),
        f"{name} squared": (lambda x: x.double() * x.double(), f"{name} is applied twice"),
        f"2 {name} in place of {name}": (lambda x: 2 * x.double(), f"{name} is counted twice"),
        f"{name}/2 in place of {name}": (lambda x: x.double() / 2, f"half of {name} is counted"),
        f"1 + {name} in place of {name}": (lambda x: 1 + x.double(), f"1 is added to {name}"),
        f"1/{name} in place of {name}": (
            lambda x: 1 / x.double(),
            f"{name} divides in place of multiplying, or the reverse",
        ),
        f"|{name}| in place of {name}": (torch.abs, f"the magnitude of {name} is taken"),
    }
    for words, (change, mistake) in named.items():
        yield ChangedInputs(
            DiagnosisKind.changed_input,
            words,
            cut_change=each_input((name,), change),
            weight=0.99,
            mistake=mistake,
        )
    yield from _quantised(name, value)


def _quantised(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """An input in 8 bits whose scale is forgotten, or that does not fit its scale."""
    if value.dim() < 2:
        return
    for axes, what in (((-2, -1), "matrix (each head)"), ((-1,), "row"), (None, "tensor")):
        for largest, kind in ((448.0, "e4m3"), (57344.0, "e5m2"), (127.0, "int8")):
            words = f"{name} divided by the {kind} scale of its {what}, amax/{largest:g}"
            mistake = f"the quantised (8-bit, {kind}) {name} is never multiplied by its scale"
            yield one_input(
                name,
                words,
                lambda x, a=axes, m=largest: _unscaled(x, a, m),  # type: ignore[misc]
                1.01,
                mistake,
            )
    for limit in (1.0, 448.0, 127.0, 2.0, 4.0, 6.0, 8.0):
        if float(value.double().abs().nan_to_num(0).max()) > limit:
            words = f"{name} clipped to {limit:g}"
            mistake = (
                f"{name} saturates: values above {limit:g} are clipped, as by a fixed or too small"
                " scale of an 8-bit type (e4m3)"
            )
            yield one_input(
                name,
                words,
                lambda x, m=limit: x.double().clamp(-m, m),  # type: ignore[misc]
                0.99,
                mistake,
            )


def _unscaled(value: torch.Tensor, axes: tuple[int, ...] | None, largest: float) -> torch.Tensor:
    wide = value.double()
    every = axes if axes is not None else tuple(range(wide.dim()))
    scale = wide.abs().amax(dim=every, keepdim=True) / largest
    return wide / torch.where(scale > 0, scale, torch.ones_like(scale))
