"""How much of a wrong call a changed reference explains, within a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, matching
from evoengine.evaluate.worker.forensics.reference_window import ReferenceWindow
from evoengine.evaluate.worker.inputs import Tensors

LEAST_OVER_CHANCE = 0.25
LEAST_RIGHT = 0.1  # right elements for each wrong one: fewer may be right by chance
LEAST_FIT = 0.6  # of the squared error of the elements that a change explains: else it is chance
# Where fewer elements than this are wrong, many changes come near them by chance: those that alter
# right elements as well must be seen there, by the slope of the error over the change (1 if it is
# the cause, 0 if not), unless so few or so small alterations say nothing.
FEW_WRONG, LEAST_SLOPE, SURE_ERRORS = 0.01, 0.5, 4.0
# Where a change alters so many right elements, and they do not follow it, it holds only where the
# output is wrong: it counts as altering this share of the right ones.
FEW_SPOILED, CONTRADICTED = 16, 0.1


@dataclass(frozen=True)
class Explained:
    """What follows from one changed reference.

    `share` of the wrong elements equals it within the gate; `spoiled` of the right ones does not,
    at least CONTRADICTED where they say that it is not the cause.
    `reduction` is the share of the squared error of wrong elements that it takes away, `size` the
    RMS of its own error over that of the output, everywhere.
    """

    share: float
    spoiled: float
    reduction: float
    size: float


class ExplainedShare:
    """Compares changed references with what was written in the window."""

    def __init__(self, window: ReferenceWindow, outputs: Sequence[ComparedOutput]) -> None:
        self._outputs = outputs
        cut = window.cut_output
        self._values = {one.name: cut(one.name, one.value) for one in outputs}
        self._references = {one.name: cut(one.name, one.reference) for one in outputs}
        self._wrong = {one.name: cut(one.name, one.wrong) for one in outputs}
        self._bad = {one.name: cut(one.name, one.bad) for one in outputs}
        self._usual = {
            name: _rms(reference[reference.isfinite()])
            for name, reference in self._references.items()
        }
        # what equals the reference by the wider limit of `matching` proves nothing
        for one in outputs:
            name = one.name
            near = matching(
                self._values[name], self._references[name], one.gate, one.dtype, self._usual[name]
            )
            self._wrong[name] &= ~near
        self.bad = sum(int(bad.sum()) for bad in self._bad.values())
        self._errors = {
            name: self._values[name] - reference for name, reference in self._references.items()
        }
        self._finite = {
            name: error.isfinite() for name, error in self._errors.items()
        }  # both value and reference

    def may_explain(self, found: Tensors, share: float, reduction: float) -> bool:
        """Whether `of` may find such a share, or such a reduction; quicker, and never stricter."""
        explained = 0
        left = 0.0
        for one in self._outputs:
            name = one.name
            off = (self._values[name] - found[name]).abs()
            near = off <= self._wide_limits[name]
            if not self._is_finite[name]:
                near |= (self._values[name] == found[name]) | found[name].isnan()
            explained += int((near & self._wrong[name]).sum())
            off = (off / (self._usual[name] or 1.0)).nan_to_num(0.0, 0.0, 0.0)
            left += float(off.masked_fill(~self._counted[name], 0).square().sum())
        if explained >= share * max(1, self.bad):
            return True
        return bool(self._error) and 1 - left / self._error >= reduction

    @cached_property
    def _is_finite(self) -> dict[str, bool]:
        return {name: bool(value.isfinite().all()) for name, value in self._values.items()}

    @cached_property
    def _counted(self) -> Tensors:
        return {name: self._bad[name] & finite for name, finite in self._finite.items()}

    @cached_property
    def _error(self) -> float:
        """The squared error of wrong elements, in units of what was expected."""
        return sum(
            float(
                (error / (self._usual[name] or 1.0))
                .masked_fill(~self._counted[name], 0)
                .square()
                .sum()
            )
            for name, error in self._errors.items()
        )

    @cached_property
    def _wide_limits(self) -> Tensors:
        """Twice what `matching` allows of a tensor that equals the output."""
        found = {}
        for one in self._outputs:
            value = self._values[one.name]
            size = _rms(value[value.isfinite()])
            growth = max(1.0, size / self._usual[one.name]) if self._usual[one.name] else 1.0
            eps = torch.finfo(one.dtype).eps if one.dtype.is_floating_point else 0.0
            found[one.name] = 2 * (one.gate.atol * growth + (one.gate.rtol + eps) * value.abs())
        return found

    def of(self, found: Tensors) -> Explained:
        """What `found`, cut outputs by name, explains."""
        explained = right = spoiled = 0
        left = error = own = whole = fitted = fit = 0.0
        for one in self._outputs:
            value, other = self._values[one.name], found[one.name]
            near = matching(value, other, one.gate, one.dtype, self._usual[one.name])
            wrong, bad = self._wrong[one.name], self._bad[one.name]
            explained += int((near & wrong).sum())
            right += int((~bad).sum())
            spoiled += int((~near & ~bad).sum())
            scale = self._usual[one.name] or 1.0
            usable = self._finite[one.name] & other.isfinite()
            errors = (self._errors[one.name] / scale).masked_fill(~usable, 0).square()
            others = (other - self._references[one.name]) / scale
            lefts = (value - other) / scale
            whole += float(errors.sum())
            own += float(others.masked_fill(~usable, 0).square().sum())
            lefts = lefts.masked_fill(~(usable & bad), 0).square()
            left += float(lefts.sum())
            error += float(errors.masked_fill(~bad, 0).sum())
            explaining = near & wrong & usable
            fitted += float(errors.masked_fill(~explaining, 0).sum())
            fit += float(lefts.masked_fill(~explaining, 0).sum())
        share = explained / max(1, self.bad)
        if fitted and 1 - fit / fitted < LEAST_FIT:
            share = 0.0  # the errors are hardly beyond the gate: anything near explains them
        if share > LEAST_OVER_CHANCE and share - self._chance(found) < LEAST_OVER_CHANCE:
            share = 0.0
        of_right = spoiled / max(1, right, LEAST_RIGHT * self.bad)
        are_few = self.bad < FEW_WRONG * right
        is_asked = are_few or (share and spoiled >= FEW_SPOILED)
        if is_asked and not self._is_seen_in_right_ones(found):
            if are_few:
                share = left = error = 0.0
            else:
                of_right = max(of_right, CONTRADICTED)
        return Explained(
            share,
            of_right,
            1 - left / error if error else 0.0,
            (own / whole) ** 0.5 if whole else 0.0,
        )

    def no_rounding(self, found: Tensors) -> float:
        """The share of the wrong elements that cannot be those of `found`, computed in the same low
        precision in another order: they are not finite where it is, or not zero where it is.
        """
        count = 0
        for one in self._outputs:
            value, other = self._values[one.name], found[one.name]
            cannot_be = (~value.isfinite() & other.isfinite()) | ((other == 0) & (value != 0))
            count += int((self._wrong[one.name] & cannot_be).sum())
        return count / max(1, self.bad)

    def _is_seen_in_right_ones(self, found: Tensors) -> bool:
        """Whether the errors of right elements follow what `found` changes there, or nothing can be
        told from them.
        """
        common = altered = noise = 0.0
        count = 0
        for one in self._outputs:
            change = found[one.name] - self._references[one.name]
            usable = ~self._bad[one.name] & self._finite[one.name] & change.isfinite()
            usable &= change != 0
            scale = self._usual[one.name] or 1.0
            changes = change[usable] / scale
            errors = self._errors[one.name][usable] / scale
            common += float((errors * changes).sum())
            altered += float(changes.square().sum())
            noise += float(errors.square().sum())
            count += changes.numel()
        if not altered:
            return True
        slope = common / altered
        uncertain = (noise / count / altered) ** 0.5
        return slope >= LEAST_SLOPE or 1 - slope < SURE_ERRORS * uncertain

    def _chance(self, found: Tensors) -> float:
        """The share that values of another place of the same reference would explain."""
        explained = 0
        for one in self._outputs:
            other = found[one.name].flatten()
            mixed = other.roll(other.numel() // 3 + 1).view(found[one.name].shape)
            near = matching(
                self._values[one.name], mixed, one.gate, one.dtype, self._usual[one.name]
            )
            explained += int((near & self._wrong[one.name]).sum())
        return explained / max(1, self.bad)


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else 0.0
