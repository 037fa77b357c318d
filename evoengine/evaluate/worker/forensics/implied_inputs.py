"""What an input must have been for the reference to give what a candidate wrote.

For small inputs, such as scales, weights and filters: each index of an axis that the output has,
too, is solved for by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from evoengine.evaluate.worker.forensics.changed_input import input_axes
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.error_region import error_region
from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.lead import WHOLE, Lead
from evoengine.evaluate.worker.forensics.moved_output import moved_leads
from evoengine.evaluate.worker.forensics.proportions import proportion_leads
from evoengine.evaluate.worker.forensics.reference_window import ReferenceWindow
from evoengine.evaluate.worker.forensics.time_limit import TimeLimit
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

MOST_UNKNOWNS = 72  # of one index of the shared axis; the reference is called for each
SHARED = 2  # outputs for each unknown at least
ROUNDS = 4
NUDGE = 1e-6
FITTED = 0.95  # of the squared error
SPOILED = 0.05
SURE = 1.0
SURE_SHARE = 0.6  # of the elements of an input
MOSTLY = 0.95
PRECISION = 1e-3  # of an implied value, in units of the RMS of its input


@dataclass(frozen=True, eq=False)
class ImpliedInput:
    """An input as it must have been, float64 of its shape, and the outputs that follow."""

    name: str
    value: torch.Tensor
    outputs: Tensors


class ImpliedInputs:
    """Fits one input at a time to what was written in one window."""

    def __init__(
        self,
        task: Task,
        window: ReferenceWindow,
        explained: ExplainedShare,
        worst: ComparedOutput,
        tiles: Sequence[int],
        limit: TimeLimit,
    ) -> None:
        self._task = task
        self._window = window
        self._explained = explained
        self._worst = worst
        self._tiles = tiles
        self._limit = limit
        self._target = window.cut_output(worst.name, worst.value)

    def leads(self) -> Iterator[Lead]:
        """What is said of each input that explains the output. Raises TimeUp."""
        for name, value in self._window.inputs.items():
            if not value.is_floating_point() or value.numel() * SHARED > self._target.numel():
                continue
            fit = self._fitted(name, value.double())
            if fit is None:
                continue
            found = self._explained.of(fit.outputs)
            if found.reduction < FITTED or found.spoiled > SPOILED:
                continue
            lead = self._described(fit, max(found.share, 0.85 * found.reduction))
            if lead is not None:
                yield lead

    def _fitted(self, name: str, right: torch.Tensor) -> ImpliedInput | None:
        for axis, out_axis in self._shared_axes(name):
            unknowns = right.numel() // right.shape[axis] if axis is not None else right.numel()
            if unknowns <= MOST_UNKNOWNS:
                return self._solved(name, right, axis, out_axis)
        return None

    def _shared_axes(self, name: str) -> Iterator[tuple[int | None, int]]:
        """Axes of the input that the output has, the longest one first; then none."""
        axes, own = self._worst.axes, input_axes(self._task, name)
        pairs = [
            (number, axes.index(dim))
            for number, dim in enumerate(own)
            if axes.count(dim) == 1 and own.count(dim) == 1
        ]
        yield from sorted(pairs, key=lambda pair: -self._target.shape[pair[1]])
        yield None, 0

    def _solved(
        self, name: str, right: torch.Tensor, axis: int | None, out_axis: int
    ) -> ImpliedInput | None:
        value = right.clone()
        best: tuple[float, ImpliedInput] | None = None
        for _ in range(ROUNDS):
            base = self._computed(name, value)
            if base is None:
                break
            left = (self._target - base[self._worst.name]).nan_to_num(0.0, 0.0, 0.0)
            error = float(left.square().sum())
            if best is None or error < best[0]:
                best = error, ImpliedInput(name, value, base)
            if best[0] == 0 or error > best[0]:
                break
            step = self._step(name, value, base, left, axis, out_axis)
            if step is None or not bool(step.any()):
                break
            value = value + step
        return best[1] if best else None

    def _step(
        self,
        name: str,
        value: torch.Tensor,
        base: Tensors,
        left: torch.Tensor,
        axis: int | None,
        out_axis: int,
    ) -> torch.Tensor | None:
        """One Gauss-Newton step."""
        shared = 1 if axis is None else value.shape[axis]
        flat = (value if axis is None else value.movedim(axis, 0)).reshape(shared, -1)
        nudge = NUDGE * (float(value.square().mean().sqrt()) or 1.0)
        columns = []
        for number in range(flat.shape[1]):
            moved = flat.clone()
            moved[:, number] += nudge
            found = self._computed(name, self._shaped(moved, value, axis))
            if found is None:
                return None
            slope = (found[self._worst.name] - base[self._worst.name]) / nudge
            columns.append(self._by_index(slope.nan_to_num(0.0, 0.0, 0.0), shared, out_axis))
        slopes = torch.stack(columns, -1)
        gram = slopes.mT @ slopes
        size = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
        eye = torch.eye(gram.shape[-1], dtype=gram.dtype)
        target = (slopes * self._by_index(left, shared, out_axis).unsqueeze(-1)).sum(1)
        solved = torch.linalg.solve_ex(gram + (1e-9 * size + 1e-300) * eye, target).result
        return self._shaped(solved.nan_to_num(0.0, 0.0, 0.0), value, axis)

    def _by_index(self, value: torch.Tensor, shared: int, out_axis: int) -> torch.Tensor:
        moved = value if shared == 1 else value.movedim(out_axis, 0)
        return moved.reshape(shared, -1)

    @staticmethod
    def _shaped(flat: torch.Tensor, value: torch.Tensor, axis: int | None) -> torch.Tensor:
        if axis is None:
            return flat.reshape(value.shape)
        moved = value.movedim(axis, 0)
        return flat.reshape(moved.shape).movedim(0, axis)

    def _computed(self, name: str, value: torch.Tensor) -> Tensors | None:
        if self._limit.is_over:
            return None
        return self._window.compute({**self._window.inputs, name: value})

    def _described(self, fit: ImpliedInput, share: float) -> Lead | None:
        """What is said of the implied input, were it an output."""
        right = self._window.inputs[fit.name].double()
        size = float(right.square().mean().sqrt()) or 1.0
        gate = replace(self._worst.gate, atol=PRECISION * size, rtol=PRECISION)
        wrong = (fit.value - right).abs() > 4 * PRECISION * size
        if int(wrong.sum()) < 1:
            return None
        compared = ComparedOutput(
            name=fit.name,
            axes=input_axes(self._task, fit.name),
            dtype=torch.float64,
            value=fit.value,
            reference=right,
            wrong=wrong,
            unwritten=torch.zeros_like(wrong),
            gate=gate,
        )
        if float((fit.value[wrong].abs() < 4 * PRECISION * size).double().mean()) > MOSTLY:
            if bool(wrong.all()):
                return None  # a fit that has found nothing is 0, too
            region = error_region(wrong, compared.axes, self._tiles)
            return self._lead(fit.name, f"{fit.name} is 0, left out: {region.words}", share)
        leads = moved_leads(compared, self._tiles) if right.numel() > 1 else []
        if int(wrong.sum()) >= 2:
            others = {
                name: value for name, value in self._window.inputs.items() if name != fit.name
            }
            leads += proportion_leads(compared, {}, others, {})
        best = max(leads, key=lambda lead: lead.rank, default=None)
        if best is None or best.share < SURE_SHARE:
            return None
        return self._lead(fit.name, best.sentence.removesuffix("."), share, best.is_of_some)

    @staticmethod
    def _lead(name: str, found: str, share: float, is_of_some: bool = False) -> Lead:
        sure = share >= WHOLE
        return Lead(
            DiagnosisKind.changed_input,
            f"{'' if sure else 'Probably '}{name} is read wrongly: what is used as {found}; the"
            f" output {'equals' if sure else 'is nearly'} the reference with it so.",
            min(1.0, share) if math.isfinite(share) else 0.0,
            SURE,
            {"input": name, "found": found},
            is_of_some=is_of_some,
        )
