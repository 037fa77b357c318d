"""One wrong output beside its reference, element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.gate import Gate

UNCHANGED_SHARE = 0.05  # of the wrong elements of an output that is changed in place
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


MOST_ELEMENTS = 1 << 18  # of an output that is looked at many times
SAMPLE = 8192
# The indices that are kept of an axis.
Selection = list[tuple[int, torch.Tensor]]


@dataclass(frozen=True, eq=False)
class ComparedOutput:
    """One output of a wrong call, all tensors of one shape.

    `value` and `reference` are float64; `wrong` says which elements are beyond the gate, those
    apart that were never written (`unwritten`).
    """

    name: str
    axes: tuple[str, ...]  # the formula of each extent, as in the task file: ("B", "H", "S", "D")
    dtype: torch.dtype
    value: torch.Tensor
    reference: torch.Tensor
    wrong: torch.Tensor
    unwritten: torch.Tensor
    gate: Gate

    @property
    def bad(self) -> torch.Tensor:
        """Every element that is wrong or was never written."""
        return self.wrong | self.unwritten

    def without_written(self, written: torch.Tensor | None) -> ComparedOutput:
        """The same, where `written` elements are wrong and not unwritten."""
        if written is None:
            return self
        return replace(
            self,
            wrong=self.wrong | (self.unwritten & written),
            unwritten=self.unwritten & ~written,
        )

    def matches(self, other: torch.Tensor) -> torch.Tensor:
        """Which elements equal `other`, float64 of the same shape, as well as the gate asks.

        The gate is meant for values of the reference's size: where `other` is larger, so is the
        tolerance. The same infinity matches, and so does NaN where `other` has NaN.
        """
        return matching(self.value, other, self.gate, self.dtype, self._rms)

    def thinned(self) -> tuple[ComparedOutput, Selection]:
        """Some of its rows, those that are hit most among them, so that no more than about
        MOST_ELEMENTS are left; of one dimension some of its elements. And which ones.
        """
        kept: Selection = []
        thin = self
        axes = range(max(1, self.value.dim() - 1)) if self.value.dim() else ()
        for axis in axes:
            more = thin.value.numel() / MOST_ELEMENTS
            extent = thin.value.shape[axis]
            if more <= 1 or extent < 2:
                continue
            places = _most_hit(thin.bad, axis, max(2, int(extent / more)))
            kept.append((axis, places))
            thin = replace(
                thin,
                value=thin.value.index_select(axis, places),
                reference=thin.reference.index_select(axis, places),
                wrong=thin.wrong.index_select(axis, places),
                unwritten=thin.unwritten.index_select(axis, places),
            )
        return thin, kept

    def at(self, places: torch.Tensor) -> ComparedOutput:
        """Some of its elements, by flat index, as an output of one dimension."""
        return replace(
            self,
            axes=("element",),
            value=self.value.flatten()[places],
            reference=self.reference.flatten()[places],
            wrong=self.wrong.flatten()[places],
            unwritten=self.unwritten.flatten()[places],
        )

    @property
    def _rms(self) -> float:
        finite = self.reference[self.reference.isfinite()]
        return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def matching(
    value: torch.Tensor, other: torch.Tensor, gate: Gate, dtype: torch.dtype, usual: float
) -> torch.Tensor:
    """Which elements of `value` equal `other`; `usual` is the RMS of what was expected."""
    finite = other[other.isfinite()]
    rms = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    growth = max(1.0, rms / usual) if usual > 0 and math.isfinite(rms) else 1.0
    eps = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    limit = gate.atol * growth + (gate.rtol + eps) * other.abs()
    near = ((value - other).abs() <= limit) & other.isfinite()  # no limit is infinite
    return near | (value == other) | (value.isnan() & other.isnan())


def sampled(wrong: torch.Tensor) -> torch.Tensor:
    """Flat indices of up to SAMPLE wrong elements, evenly spread."""
    places = wrong.flatten().nonzero().flatten()
    if places.numel() <= SAMPLE:
        return places
    # a step of its own, prime to periods of two, so that no residue is left out
    return places[torch.linspace(0, places.numel() - 1, SAMPLE).long()]


def selected(value: torch.Tensor, kept: Selection) -> torch.Tensor:
    """The part of a tensor of an output's shape that a thinned output has."""
    for axis, places in kept:
        value = value.index_select(axis, places)
    return value


def _most_hit(bad: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    """So many indices of an axis in order, half of them those that are hit most."""
    others = [other for other in range(bad.dim()) if other != axis]
    shares = bad.double().mean(dim=others) if others else bad.double()
    most = shares.topk(max(1, count // 2)).indices
    between = torch.linspace(0, shares.numel() - 1, max(1, count - len(most))).long()
    places: torch.Tensor = torch.cat([most, between]).unique()
    return places


def compared_output(call: WrongCall, name: str, axes: tuple[str, ...]) -> ComparedOutput:
    """Output `name` of a wrong call beside its reference."""
    output, reference, gate = call.outputs[name], call.reference[name], call.gates[name]
    in_place = name in call.inputs
    before = call.inputs[name] if in_place else None
    value = output.double()
    limit = gate.atol + gate.rtol * reference.abs()
    right = ((value - reference).abs() <= limit) | (value == reference)
    if bool(right.all()):  # only the sum of its errors is too large: the larger ones count
        finite = reference.masked_fill(reference.isinf(), 0)
        rms = float(finite.square().mean().sqrt())
        right = (value - reference).abs() <= gate.rel_rmse * rms
        gate = replace(gate, atol=gate.rel_rmse * rms, rtol=0.0)
    unwritten = ~right & (_same_bits(output, before) if in_place else poisoned(output, call.poison))
    if in_place and int(unwritten.sum()) < UNCHANGED_SHARE * int((~right).sum()):
        unwritten = torch.zeros_like(unwritten)  # a wrong change can be none, here and there
    return ComparedOutput(
        name=name,
        axes=axes,
        dtype=output.dtype,
        value=value,
        reference=reference,
        wrong=~right & ~unwritten,
        unwritten=unwritten,
        gate=gate,
    )


def poisoned(output: torch.Tensor, byte: int) -> torch.Tensor:
    """Which elements still hold the poison, bit by bit."""
    size = output.element_size()
    (pattern,) = torch.tensor([byte] * size, dtype=torch.uint8).view(_BITS[size])
    held: torch.Tensor = output.contiguous().view(_BITS[size]) == pattern
    return held


def _same_bits(output: torch.Tensor, before: torch.Tensor | None) -> torch.Tensor:
    assert before is not None
    kind = _BITS[output.element_size()]
    return output.contiguous().view(kind) == before.contiguous().view(kind)
