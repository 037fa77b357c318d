"""An output that is its reference but for a factor, an offset, a sign, or a part of an input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, selected
from evoengine.evaluate.worker.forensics.known_number import names_of
from evoengine.evaluate.worker.forensics.lead import WHOLE, Lead, figure
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

LEAST_SHARE = 0.6  # of the wrong elements
RIGHT_SHARE = 0.5  # of the elements: with so many right ones, a ratio must hold for them, too
TELLING_SHARE = 0.1  # right elements that a ratio would have changed, for each wrong one
LEAST_GROUP = 4  # elements that share a factor of their own
MOST_GROUPS_SHARE = 0.25  # of the elements: with more, anything is explained


def proportion_leads(
    compared: ComparedOutput,
    numbers: Mapping[str, float],
    inputs: Tensors,
    others: Tensors,
) -> list[Lead]:
    """What the wrong elements are, in multiples of what they should be.

    `numbers` names the quantities of the case; `others` are the references of other outputs.
    """
    shape = compared.value.shape
    compared, kept = compared.thinned()
    wrong = compared.wrong & compared.value.isfinite() & compared.reference.isfinite()
    if int(wrong.sum()) < 2:
        return []
    found = [
        *_sign(compared),
        *_ratio(compared, wrong, numbers),
        *_offset(compared, wrong, numbers),
    ]
    if any(lead.is_whole for lead in found):
        return found
    placed = [
        (name, along, selected(one.expand(shape), kept).double(), given.shape == shape)
        for name, given in inputs.items()
        if given.is_floating_point()
        for along, one in _placed(given, shape)
    ]
    found += _inputs(compared, wrong, numbers, placed)
    same = {name: selected(one, kept) for name, one in others.items() if one.shape == shape}
    found += _others(compared, same)
    if any(lead.is_whole for lead in found):
        return found
    return [*found, *_grouped(compared, wrong)]


def _explained(compared: ComparedOutput, other: torch.Tensor) -> float:
    wrong = compared.wrong
    return float((compared.matches(other) & wrong).sum()) / float(compared.bad.sum())


def _sign(compared: ComparedOutput) -> Iterator[Lead]:
    share = _explained(compared, -compared.reference)
    if share > LEAST_SHARE:
        yield Lead(
            DiagnosisKind.sign, f"{compared.name} has the opposite sign.", share, 1.1, {"ratio": -1}
        )


def _ratio(
    compared: ComparedOutput, wrong: torch.Tensor, numbers: Mapping[str, float]
) -> Iterator[Lead]:
    value, reference = compared.value[wrong], compared.reference[wrong]
    large = (
        reference.abs() >= reference.abs().quantile(0.5)
        if reference.numel() < 1 << 24
        else (reference.abs() >= reference.abs().median())
    )
    large &= reference != 0
    if not bool(large.any()):
        return
    ratio = float((value[large] / reference[large]).median())
    if not math.isfinite(ratio) or ratio == 0:
        return
    share = _explained(compared, ratio * compared.reference)
    tolerance = _tolerance(compared, int(wrong.sum()))
    if share < LEAST_SHARE or abs(ratio - 1) < 3 * tolerance or abs(ratio + 1) < 3 * tolerance:
        return
    names = names_of(ratio, numbers, tolerance)
    inverse = 1 / ratio
    whole = abs(inverse) > 1 and abs(inverse - round(inverse)) < 3 * tolerance * abs(inverse)
    shown = f"1/{round(inverse)}" if whole else figure(ratio)
    named = f" ({' = '.join(names)})" if names else ""
    yield Lead(
        DiagnosisKind.ratio,
        f"{compared.name} is too {_size(ratio)}: {shown} times what it should be{named}.",
        share,
        _ratio_weight(
            compared, ratio, bool(names) or whole or abs(ratio - round(ratio)) < tolerance
        ),
        {"ratio": ratio, "names": list(names)},
    )


def _ratio_weight(compared: ComparedOutput, ratio: float, is_known: bool) -> float:
    """Less where few elements are wrong, and the right ones do not have the ratio: a ratio that
    holds for some elements alone may be chance.
    """
    weight = 1.1 if is_known else 1.0
    right = ~compared.bad
    if float(right.double().mean()) < RIGHT_SHARE:
        return weight
    limit = compared.gate.atol + compared.gate.rtol * compared.reference.abs()
    telling = right & ((ratio - 1) * compared.reference).abs().gt(2 * limit)
    if float(telling.sum()) < TELLING_SHARE * float(compared.bad.sum()):
        return 0.85  # right elements fit any ratio, so small are they
    spoiled = telling & ~compared.matches(ratio * compared.reference)
    return weight if float(spoiled.sum()) < 0.05 * float(telling.sum()) else 0.85


def _size(ratio: float) -> str:
    """`small by a factor of 0.5 (half)`."""
    named = {2: " (twice)", 0.5: " (half)", 4: " (four times)", 0.25: " (a quarter)"}
    size = abs(ratio)
    known = next((words for value, words in named.items() if abs(size / value - 1) < 0.02), "")
    return f"{'large' if size > 1 else 'small'} by a factor of {figure(ratio)}{known}"


def _offset(
    compared: ComparedOutput, wrong: torch.Tensor, numbers: Mapping[str, float]
) -> Iterator[Lead]:
    offset = float((compared.value - compared.reference)[wrong].median())
    if not math.isfinite(offset) or offset == 0:
        return
    share = _explained(compared, compared.reference + offset)
    if share < LEAST_SHARE:
        return
    error = compared.gate.atol / abs(offset)
    names = names_of(offset, numbers, min(0.01, error))
    named = f" ({' = '.join(names)})" if names else ""
    yield Lead(
        DiagnosisKind.offset,
        f"{compared.name} is off by {figure(offset)}{named} everywhere it is wrong.",
        share,
        1.0,
        {"offset": offset, "names": list(names)},
    )


def _inputs(
    compared: ComparedOutput,
    wrong: torch.Tensor,
    numbers: Mapping[str, float],
    placed: Sequence[tuple[str, str, torch.Tensor, bool]],
) -> Iterator[Lead]:
    """Copies of an input, and errors that are a multiple of one. `placed` are their names, how they
    lie, their values in the output's shape, and whether they have that shape themselves.
    """
    for name, along, values, is_whole in placed:
        copied = _explained(compared, values) if is_whole else 0.0
        if copied > LEAST_SHARE:
            words = f"{compared.name} is a copy of {name}."
            yield Lead(DiagnosisKind.copied, words, copied, 1.1, {"input": name})
            continue
        error = (compared.value - compared.reference)[wrong]
        chosen = values[wrong]
        power = float(chosen.square().sum())
        if power == 0:
            continue
        factor = float((error * chosen).sum()) / power
        share = _explained(compared, compared.reference + factor * values)
        if share < 0.9 or factor == 0:
            continue
        names = names_of(factor, numbers, 0.01)
        times = "" if abs(abs(factor) - 1) < 0.01 else f"{figure(abs(factor))} times "
        named = f" ({' = '.join(names)})" if names and times else ""
        yield Lead(
            DiagnosisKind.input_multiple,
            f"The error of {compared.name} is {'-' if factor < 0 else ''}{times}{name}"
            f"{along}{named}.",
            share,
            0.98,
            {"input": name, "factor": factor, "names": list(names)},
        )


def _placed(given: torch.Tensor, shape: torch.Size) -> Iterator[tuple[str, torch.Tensor]]:
    """An input as it may be broadcast to an output's shape: as it is, or along another axis."""
    ends = shape[len(shape) - given.dim() :] if given.dim() <= len(shape) else ()
    if given.dim() == len(ends) and all(
        own in (1, extent) for own, extent in zip(given.shape, ends, strict=True)
    ):
        yield "", given
    if given.dim() == 1 and len(shape) > 1:
        for axis, extent in enumerate(shape[:-1]):
            if extent == given.numel() and extent > 1:
                view = [1] * len(shape)
                view[axis] = extent
                yield f" along axis {axis}", given.view(view)


def _others(compared: ComparedOutput, others: Tensors) -> Iterator[Lead]:
    for name, other in others.items():
        if other.shape == compared.value.shape:
            share = _explained(compared, other)
            if share > LEAST_SHARE:
                yield Lead(
                    DiagnosisKind.copied,
                    f"{compared.name} holds what output {name} should hold.",
                    share,
                    1.1,
                    {"output": name},
                )


def _grouped(compared: ComparedOutput, wrong: torch.Tensor) -> Iterator[Lead]:
    """Factors and offsets that each row, column or head has of its own."""
    dims = compared.value.dim()
    if dims < 2:
        return
    groups = [(tuple(range(dims - 1)), "row")]
    groups += [((axis,), f"index of {compared.axes[axis]}") for axis in range(dims)]
    elements = compared.value.numel()
    usable = compared.value.isfinite() & compared.reference.isfinite()
    value = compared.value.masked_fill(~usable, 0)
    reference = compared.reference.masked_fill(~usable, 0)
    best: Lead | None = None
    for kept, what in groups:
        count = math.prod(compared.value.shape[axis] for axis in kept)
        others = [axis for axis in range(dims) if axis not in kept]
        if count < 2 or count > MOST_GROUPS_SHARE * elements or elements // count < LEAST_GROUP:
            continue
        power = reference.square().sum(others, keepdim=True)
        factor = (value * reference).sum(others, keepdim=True) / power.clamp_min(1e-300)
        counts = usable.double().sum(others, keepdim=True).clamp_min(1)
        offset = (value - reference).sum(others, keepdim=True) / counts
        if not bool(factor.any()):
            continue
        for kind, other, own in (
            (DiagnosisKind.group_ratio, factor * reference, factor),
            (DiagnosisKind.group_offset, reference + offset, offset),
        ):
            share = _explained(compared, other)
            if share < 0.9 or (best and share <= best.share + 0.02):
                continue
            hit = (
                wrong.any(dim=others[0], keepdim=True)
                if len(others) == 1
                else (wrong.double().sum(others, keepdim=True) > 0)
            )
            low, high = float(own[hit].min()), float(own[hit].max())
            best = _group_lead(compared.name, kind, what, (low, high), share)
            if kind is DiagnosisKind.group_ratio and (words := _counts(own[hit])):
                best = replace(best, sentence=f"{best.sentence[:-1]}; {words}.")
    if best is not None:
        yield best


def _counts(factors: torch.Tensor) -> str:
    """Whether all factors are whole numbers, or one divided by them: a count."""
    if int((factors > 0).sum()) < factors.numel():
        return ""
    for values, words in (
        (1 / factors, "all are 1/n: divided by a count"),
        (factors, "all are whole: not divided by a count"),
    ):
        whole = (values - values.round()).abs() <= 2e-3 * values
        if bool(whole.all()) and float(values.max()) > 1.5:
            return words
    return ""


def _group_lead(
    name: str, kind: DiagnosisKind, what: str, ends: tuple[float, float], share: float
) -> Lead:
    low, high = map(figure, ends)
    if kind is DiagnosisKind.group_ratio:
        sentence = (
            f"Each {what} of {name} is off by a factor of its own, {low} to {high}: divided by the"
            " wrong sum or norm, or by none."
        )
    else:
        sentence = (
            f"Each {what} of {name} is off by an amount of its own, {low} to {high}: a wrong mean"
            " or bias."
        )
    return Lead(
        kind, sentence, share, 0.9 if share >= WHOLE else 0.8, {"low": ends[0], "high": ends[1]}
    )


def _tolerance(compared: ComparedOutput, elements: int) -> float:
    """How well a ratio is known, relatively."""
    return min(0.02, max(2e-4, 10 * compared.gate.rel_rmse / math.sqrt(max(1, elements))))
