"""Inputs whose values are taken wrongly: as 0 or 1, negated, squared, clipped, not scaled."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from evoengine.evaluate.worker.forensics.axis_words import listed
from evoengine.evaluate.worker.forensics.changed_input import (
    Change,
    ChangedInputs,
    each_input,
    one_input,
)
from evoengine.evaluate.worker.forensics.lead import WHOLE
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

GROUPS = (16, 32, 64, 128)  # columns that share a step when they are quantised


def of_other_values(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """One input inverted, left out, negated, squared or doubled."""
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
        yield from _without_sign(name, value)
        yield from _own_index(name, value)
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


def _without_sign(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """Small signed integers read as unsigned ones."""
    if value.dtype not in (torch.int8, torch.int16) or int(value.min()) >= 0:
        return
    most = 1 << 8 * value.element_size()
    yield one_input(
        name,
        f"{name} read as unsigned",
        lambda x: torch.where(x < 0, x.int() + most, x.int()),
        1.01,
        f"{name} is read without its sign, as unsigned integers: negative values are {most} too"
        " large",
    )


def _own_index(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """A table of places, such as gathered positions, that a kernel does not look into."""
    if value.dim() != 1 or value.dtype not in (torch.int32, torch.int64):
        return
    least, most = int(value.min()), int(value.max())
    for step, words in ((1, "its own index"), (0, "0")):
        yield one_input(
            name,
            f"{words} in place of {name}",
            lambda x, s=step: (  # type: ignore[misc]
                (torch.arange(len(x)) * s).clamp(min(0, least), max(most, 0)).to(x.dtype)
            ),
            1.01,
            f"{name} is ignored (missing): the number of the element (row, token) is used in its"
            " place"
            if step
            else f"{name} is ignored (missing): 0 is used in its place",
        )
    yield one_input(
        name,
        f"the first of {name} for all",
        lambda x: x[:1].expand_as(x).clone(),
        1.0,
        f"the first element of {name} is used for all",
    )


def of_scales(inputs: Tensors) -> Iterator[ChangedInputs]:
    """Inputs in 8 bits whose scale is forgotten, is that of another input, or does not fit: each,
    two, and all together.
    """
    names = [
        name for name, value in inputs.items() if value.is_floating_point() and value.dim() >= 2
    ]
    groups: list[tuple[str, ...]] = [(name,) for name in names]
    groups += itertools.combinations(names, 2)
    if len(names) > 2:
        groups.append(tuple(names))
    largest = {name: float(inputs[name].double().abs().nan_to_num(0).max()) for name in names}
    for group in reversed(groups):
        yield from _quantised(group, max(largest[name] for name in group))
    for name in names:
        yield from _steps_of_codes(name, inputs[name])
    for first, second in itertools.permutations(names, 2):
        if inputs[first].shape[:-2] == inputs[second].shape[:-2]:
            yield from _scale_of_another(first, second)


def _quantised(names: tuple[str, ...], most: float) -> Iterator[ChangedInputs]:
    named = listed(names)
    is_are = "is" if len(names) == 1 else "are"
    for axes, what in (((-2, -1), "matrix (each head)"), ((-1,), "row"), (None, "tensor")):
        for largest, kind in ((448.0, "e4m3"), (127.0, "int8")):
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"{named} divided by the {kind} scale of its {what}, amax/{largest:g}",
                each_input(names, lambda x, a=axes, m=largest: x.double() / _scale(x, a, m)),  # type: ignore[misc]
                weight=1.01,
                mistake=f"the quantised (8-bit, {kind}) {named} {is_are} never multiplied by the"
                " scale, amax of the head or row",
            )
    for limit in (1.0, 448.0, 127.0, 2.0, 4.0, 6.0, 8.0):
        if most > limit:
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"{named} clipped to {limit:g}",
                each_input(names, lambda x, m=limit: x.double().clamp(-m, m)),  # type: ignore[misc]
                weight=1.0 if len(names) > 1 else 0.99,
                mistake=f"{named} saturate{'s' if len(names) == 1 else ''}: values above {limit:g}"
                " are clipped, as by a fixed or too small scale of an 8-bit type (e4m3)",
            )


def _steps_of_codes(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """Codes of 8 bits whose steps are those of row 0, or of which the largest wraps; each row, or
    group of its columns, has a step of its own.
    """
    for group in dict.fromkeys((value.shape[-1], *GROUPS)):
        if value.shape[-1] % group or group < 2:
            continue
        what = "row" if group == value.shape[-1] else f"{group} columns"
        yield ChangedInputs(
            DiagnosisKind.changed_input,
            f"{name} quantised with a step for each {what}, multiplied by those of row 0",
            each_input((name,), lambda x, g=group: _grouped(x, g, _with_first_steps)),  # type: ignore[misc]
            weight=1.0,
            mistake=f"the quantised {name} is scaled back with the steps (scales) of the first row"
            " for all rows",
        )
        yield ChangedInputs(
            DiagnosisKind.changed_input,
            f"the largest magnitude of each {what} of {name} negated where it is positive",
            each_input((name,), lambda x, g=group: _grouped(x, g, _with_wrapped)),  # type: ignore[misc]
            weight=1.0,
            mistake=f"the largest code of the quantised {name} wraps (overflow): 128 does not fit"
            " in a signed byte and becomes -128",
        )


def _grouped(value: torch.Tensor, group: int, change: Change) -> torch.Tensor:
    return change(value.double().unflatten(-1, (-1, group))).flatten(-2)


def _with_first_steps(value: torch.Tensor) -> torch.Tensor:
    """`value` is [..., rows, groups, columns of a group]."""
    step = _scale(value, (-1,), 1.0)
    return value / step * step.narrow(-3, 0, 1)


def _with_wrapped(value: torch.Tensor) -> torch.Tensor:
    """Codes round to 128 where 127.5 / 128 of the largest magnitude is reached."""
    wraps = value / _scale(value, (-1,), 1.0) >= 127.5 / 128
    return torch.where(wraps, -value, value)


def _scale_of_another(name: str, other: str) -> Iterator[ChangedInputs]:
    for axes, what in (((-2, -1), "head"), (None, "tensor")):

        def change(given: Tensors, axes: tuple[int, ...] | None = axes) -> Tensors:
            right, wrong = (_scale(given[one], axes, 1.0) for one in (name, other))
            return {**given, name: given[name].double() / right * wrong}

        yield ChangedInputs(
            DiagnosisKind.changed_input,
            f"{name} multiplied by the scale (amax of each {what}) of {other}",
            change,
            mistake=f"the scale of {other} is used for {name}, quantised in 8 bits (e4m3), so each"
            f" {what} is off by a factor of its own",
            # one factor for all comes near any other one now and then
            least=WHOLE if axes is None else 0.0,
        )


def _scale(value: torch.Tensor, axes: tuple[int, ...] | None, largest: float) -> torch.Tensor:
    every = axes if axes is not None else tuple(range(value.dim()))
    scale = value.double().abs().amax(dim=every, keepdim=True) / largest
    return torch.where(scale > 0, scale, torch.ones_like(scale))
