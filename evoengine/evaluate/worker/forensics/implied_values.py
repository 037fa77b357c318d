"""What the result of a step must have been for the reference to give what a candidate wrote.

Found by Gauss-Newton steps, where every element of the output depends on one element of the result
alone, as it does on its row's mean, or its product before an activation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.recomputed_reference import Deadline
from evoengine.evaluate.worker.forensics.reference_steps import Place, StepChange
from evoengine.evaluate.worker.forensics.reference_window import ReferenceWindow
from evoengine.evaluate.worker.forensics.time_limit import TimeLimit
from evoengine.evaluate.worker.inputs import Tensors

ROUNDS = 24
LOST = 1e6  # what an output that is no longer finite counts as, in units of its RMS squared
NUDGE = 1e-6  # of the RMS of a result, for differences
# a fit that leaves so much of the squared error after so many rounds finds nothing
HOPELESS, HOPELESS_AFTER = 0.8, 3
SLOW = 0.97  # of the error of the round before: still falling where it is less
LARGEST_STEP = 0.7  # of a result, so that roots and quotients stay where they are defined
CONVERGED = 1e-9  # a step of less than this, relative to the result, is the last one


RESULT = -1  # in place of the number of an operand


@dataclass(frozen=True)
class Site:
    """The result of a step, or one of its operands."""

    place: Place
    number: int = RESULT


@dataclass(eq=False)
class HeldStep:
    """A step whose result, or one of whose operands, is replaced; what it was given is noted."""

    site: Site
    value: torch.Tensor | None = None  # in place of its own
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    right: torch.Tensor | None = None  # its own
    leaf: torch.Tensor | None = None
    calls: int = 0

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        number = self.site.number
        right = func(*args, **kwargs) if number == RESULT else args[number]
        self.calls += 1
        if self.calls > 1 or not isinstance(right, torch.Tensor) or not right.is_floating_point():
            raise ValueError("no step with one result")
        self.args, self.kwargs = tuple(map(_detached, args)), kwargs
        self.right = right.detach()
        used = self.right if self.value is None else self.value.to(self.right.device)
        self.leaf = used.clone().requires_grad_()
        held = self.leaf * 1  # so that it may be written into
        if number == RESULT:
            return held
        return func(*args[:number], held, *args[number + 1 :], **kwargs)


@dataclass(frozen=True, eq=False)
class ImpliedValue:
    """One step with its own result and the one that explains the output, float64, of one shape.
    `args` are what it is given, and `right` what it gives, where the results before it are implied
    ones; `own` is what it gives in the reference.
    """

    site: Site
    own: torch.Tensor
    right: torch.Tensor
    implied: torch.Tensor
    slope: torch.Tensor  # of the outputs, in units of their RMS, along each of its elements
    step: torch.Tensor  # by which the next round would change it: large where nothing fits
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, eq=False)
class ImpliedOutputs:
    """The outputs of a window that follow from implied results."""

    values: tuple[ImpliedValue, ...]
    outputs: Tensors  # by name, float64


class _Differentiated(StepChange):
    is_differentiated = True

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Parts of a split tensor become views of their own: references write results into them,
        which torch forbids for views that one call returns together, where gradients are kept.
        """
        found = super().run(func, args, kwargs)
        whole = args[0] if args else None
        if type(found) not in (tuple, list) or not isinstance(whole, torch.Tensor):
            return found
        return type(found)(_own_view(part, whole) for part in found)


def _own_view(part: Any, whole: torch.Tensor) -> Any:
    if not isinstance(part, torch.Tensor):
        return part
    if part.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr():
        return part
    return whole.as_strided(part.shape, part.stride(), part.storage_offset())


class ImpliedValues:
    """Fits results of steps to what was written in one window."""

    def __init__(
        self,
        window: ReferenceWindow,
        outputs: Sequence[ComparedOutput],
        folder: Path,
        limit: TimeLimit,
    ) -> None:
        self.window = window
        self._folder = folder
        self._limit = limit
        self._targets = {one.name: window.cut_output(one.name, one.value) for one in outputs}
        self.references = {one.name: window.cut_output(one.name, one.reference) for one in outputs}
        self._found: dict[tuple[Site, ...], ImpliedOutputs | None] = {}
        self._scales = {one.name: _rms(one.reference) or 1.0 for one in outputs}

    def with_values(self, values: Mapping[Site, torch.Tensor]) -> Tensors | None:
        """The outputs where results or operands are these; None where the reference fails."""
        held = [HeldStep(site, value) for site, value in values.items()]
        found = self._computed(held, StepChange)
        return found and {name: value.detach() for name, value in found.items()}

    def seen(
        self, sites: Sequence[Site], values: Mapping[Site, torch.Tensor]
    ) -> list[HeldStep] | None:
        """What steps are given and give where some of them have these values; None where the
        reference fails.
        """
        held = [HeldStep(site, values.get(site)) for site in sites]
        return None if self._computed(held, StepChange) is None else held

    def fitted(self, sites: Sequence[Site]) -> ImpliedOutputs | None:
        """The values there that come nearest to the output; None where there are none. Raises
        TimeUp.
        """
        known = tuple(sites)
        if known not in self._found:
            self._found[known] = self._fitted(known)
        return self._found[known]

    def _fitted(self, sites: Sequence[Site]) -> ImpliedOutputs | None:
        values: list[torch.Tensor | None] = [None] * len(sites)
        own: list[torch.Tensor] = []
        best: tuple[float, ImpliedOutputs] | None = None
        first = before = 0.0
        for number in range(ROUNDS):
            held = [HeldStep(site, value) for site, value in zip(sites, values, strict=True)]
            base = self._computed(held, _Differentiated)
            if base is None or any(one.leaf is None for one in held):
                break
            left = self._errors(base)
            error = float(sum(part.square().sum() for part in left.values()))
            error += LOST * self._lost(base)
            own = own or [_right(one) for one in held]
            slopes = self._total_slopes(base, held)
            if slopes is None:
                break
            steps = self._steps(held, base, left)
            if steps is None:
                break
            known = tuple(map(_implied, held, own, slopes, steps))
            if best is None or error < best[0]:
                outputs = {name: value.detach() for name, value in base.items()}
                best = error, ImpliedOutputs(known, outputs)
            first = first or error
            is_slow = number >= HOPELESS_AFTER and error > SLOW * before
            before = error
            if error > 4 * best[0] or (is_slow and best[0] > HOPELESS * first):
                break
            values = [one.implied + one.step for one in known]
            if all(_rms(one.step) <= CONVERGED * _rms(one.implied) for one in known):
                break
        return None if best is None else best[1]

    def _computed(self, held: Sequence[HeldStep], kind: type[StepChange]) -> Tensors | None:
        mode: Deadline = kind(self._folder, self._limit, {one.site.place: one for one in held})
        with torch.set_grad_enabled(kind.is_differentiated):
            return self.window.compute(self.window.inputs, mode=mode)

    def _errors(self, base: Tensors) -> Tensors:
        """What is missing of each output, in units of its RMS; 0 where either is not finite."""
        return {
            name: ((self._targets[name] - value.detach()) / self._scales[name]).nan_to_num(
                0.0, 0.0, 0.0
            )
            for name, value in base.items()
        }

    def _lost(self, base: Tensors) -> int:
        """How many outputs are not finite and should be."""
        return sum(
            int((self._targets[name].isfinite() & ~value.detach().isfinite()).sum())
            for name, value in base.items()
        )

    def _steps(
        self, held: Sequence[HeldStep], base: Tensors, left: Tensors
    ) -> list[torch.Tensor] | None:
        """One Gauss-Newton step: each element of a result by itself, several results together."""
        slopes = []
        for number in range(len(held)):
            moved = self._slope(held, number, base)
            if moved is None:
                return None
            slopes.append(moved)
        leaves = [_leaf(one) for one in held]
        right = self._gradients(base, left, leaves)
        products = [self._gradients(base, slope, leaves) for slope in slopes]
        rows = [torch.stack(column, -1) for column in zip(*products, strict=True)]
        matrix = torch.stack(rows, -2)
        size = matrix.diagonal(dim1=-2, dim2=-1).abs().mean(-1)[..., None, None]
        eye = torch.eye(len(held), dtype=torch.float64, device=matrix.device)
        solved = torch.linalg.solve_ex(
            matrix + (1e-12 * size + 1e-300) * eye, torch.stack(right, -1)
        ).result
        return [
            _limited(step.nan_to_num(0.0, 0.0, 0.0), _value(one))
            for step, one in zip(solved.unbind(-1), held, strict=True)
        ]

    def _total_slopes(self, base: Tensors, held: Sequence[HeldStep]) -> list[torch.Tensor] | None:
        """None where no output depends on a result, or through what has no gradient."""
        ones = {name: torch.ones_like(value) for name, value in base.items()}
        try:
            return self._gradients(base, ones, [_leaf(one) for one in held])
        except RuntimeError:
            return None

    def _slope(self, held: Sequence[HeldStep], number: int, base: Tensors) -> Tensors | None:
        """The outputs' derivative where all elements of one result grow alike."""
        nudge = NUDGE * (_rms(_value(held[number])) or 1.0)
        moved = [HeldStep(one.site, _value(one)) for one in held]
        moved[number].value = _value(held[number]) + nudge
        found = self._computed(moved, StepChange)
        if found is None:
            return None
        return {
            name: ((value - base[name].detach()) / nudge / self._scales[name]).nan_to_num(
                0.0, 0.0, 0.0
            )
            for name, value in found.items()
        }

    def _gradients(
        self, base: Tensors, weights: Tensors, leaves: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        total = sum(
            (weights[name] * value.nan_to_num(0.0, 0.0, 0.0) / self._scales[name]).sum()
            for name, value in base.items()
        )
        assert isinstance(total, torch.Tensor)
        found = torch.autograd.grad(total, leaves, retain_graph=True, materialize_grads=True)
        return [one.nan_to_num(0.0, 0.0, 0.0) for one in found]


def _implied(
    held: HeldStep, own: torch.Tensor, slope: torch.Tensor, step: torch.Tensor
) -> ImpliedValue:
    return ImpliedValue(
        held.site,
        own.cpu(),
        _right(held).cpu(),
        _value(held).cpu(),
        slope.cpu(),
        step.cpu(),
        held.args,
        held.kwargs,
    )


def _right(held: HeldStep) -> torch.Tensor:
    assert held.right is not None
    return held.right


def _leaf(held: HeldStep) -> torch.Tensor:
    assert held.leaf is not None
    return held.leaf


def _value(held: HeldStep) -> torch.Tensor:
    return _leaf(held).detach()


def _limited(step: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A step that leaves what is positive positive: it may stand below a root."""
    size = value.abs()
    limit = LARGEST_STEP * (size if bool((value > 0).all()) else size.clamp_min(_rms(value)))
    return torch.maximum(torch.minimum(step, limit), -limit)


def _detached(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _rms(values: torch.Tensor) -> float:
    finite = values[values.isfinite()]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0
