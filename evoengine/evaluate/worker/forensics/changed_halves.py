"""Steps that copy or pair parts of an axis: repeated and interleaved taken for one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

HALVED = {"chunk", "tensor_split", "unbind"}
JOINED = {"cat", "concat", "concatenate", "stack", "hstack"}
CONCATENATED = JOINED - {"stack"}


def changed_halves(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """All steps of one name together, as of keys and values, then each by itself."""
    repeating = [step for step in steps if step.name == "repeat_interleave"]
    for group in _groups(repeating):
        named = " and ".join(step.operand(0) or "the operand" for step in group)
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with repeat in place of repeat_interleave for {named} in {group[0].words}",
            {step.place: _repeated for step in group},
            1.02,
            mistake=f"{named} are read with the wrong mapping of indices (of heads, groups): index"
            " i % n, modulo, in place of i // (size of a group)",
        )
    for step in steps:
        if step.name in HALVED | JOINED:
            yield _exchanged(step)
        if step.name in ("cat", "concat", "stack"):
            yield _rotated(step)
    halving = [step for step in steps if step.name in HALVED - {"unbind"}]
    joining = [step for step in steps if step.name in CONCATENATED]
    for parts, words in (
        ((*halving, *joining), "halves taken and joined"),
        (tuple(halving), "halves taken"),
        (tuple(joining), "halves joined"),
    ):
        if not parts:
            continue
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with {words} in turn, even and odd places, in {parts[0].words}",
            {step.place: _in_turn if step.name in HALVED else _woven for step in parts},
            1.02,
            mistake="neighbouring elements (even and odd, interleaved pairs) are taken in place of"
            " element i with i + half (the two halves)",
        )


def _rotated(step: ReferenceStep) -> ChangedStep:
    """A rotation by a quarter, (-b, a) of (a, b), of neighbours in place of halves, or reversed."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        parts = kwargs.get("tensors", args[0] if args else ())
        right = func(*args, **kwargs)
        if len(parts) != 2 or parts[0].shape != parts[1].shape or not parts[0].dim():
            raise ValueError("no two halves")
        axis = _axis(args, kwargs, 1) % right.dim()
        if axis != right.dim() - 1:
            raise ValueError("not along the last axis")
        first, second = parts[1], -parts[0]
        if step.name == "stack":
            value = torch.stack((first, second), -1).flatten(-2)
            low, high = value.chunk(2, -1)
            return torch.cat((-high, low), -1).view(right.shape)
        value = torch.cat((first, second), -1)
        return torch.stack((-value[..., 1::2], value[..., ::2]), -1).flatten(-2)

    neighbours = "neighbouring elements (even and odd, interleaved pairs)"
    halves = "elements i and i + half (the two halves)"
    said = (halves, neighbours) if step.name == "stack" else (neighbours, halves)
    return ChangedStep(
        DiagnosisKind.changed_step,
        f"with {said[0]} rotated in {step.words}",
        {step.place: instead},
        1.02,
        mistake=f"the rotation pairs {said[0]} where {said[1]} are meant",
    )


def _exchanged(step: ReferenceStep) -> ChangedStep:
    """The parts in reverse order: two halves swapped."""
    joins = step.name in JOINED

    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if joins:
            given = kwargs.get("tensors", args[0] if args else ())
            rest = {key: value for key, value in kwargs.items() if key != "tensors"}
            return func(tuple(given)[::-1], *args[1:], **rest)
        return tuple(func(*args, **kwargs))[::-1]

    return ChangedStep(
        DiagnosisKind.changed_step,
        f"with the parts in reverse order in {step.words}",
        {step.place: instead},
        1.01,
        mistake=f"the halves (parts) are swapped where they are {'joined' if joins else 'taken'},"
        " first and second exchanged",
    )


def _groups(steps: Sequence[ReferenceStep]) -> Iterator[tuple[ReferenceStep, ...]]:
    if len(steps) > 1:
        yield tuple(steps)
    for step in steps:
        yield (step,)


def _axis(args: tuple[Any, ...], kwargs: Mapping[str, Any], number: int) -> int:
    return int(args[number] if len(args) > number else kwargs.get("dim", kwargs.get("axis", 0)))


def _repeated(_func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    value, times = args[0], args[1] if len(args) > 1 else kwargs["repeats"]
    axis = _axis(args, kwargs, 2)
    if not isinstance(times, int) or times < 2:
        raise ValueError("not repeated")
    at = torch.arange(value.shape[axis] * times, device=value.device)
    return value.index_select(axis, at % value.shape[axis])


def _in_turn(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    value, axis = args[0], _axis(args, kwargs, 2)
    parts = len(func(*args, **kwargs))
    if value.shape[axis] % parts:
        raise ValueError("parts of several sizes")
    at = torch.arange(value.shape[axis] // parts, device=value.device) * parts
    return tuple(value.index_select(axis, at + number) for number in range(parts))


def _woven(_func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    parts = args[0] if args else kwargs["tensors"]
    axis = _axis(args, kwargs, 1) % parts[0].dim()
    return torch.stack(tuple(parts), axis + 1).flatten(axis, axis + 1)
