"""Sums of a softmax that differ between the columns of one row, from what they must have been.

Where each lane divides the columns that it writes by a total of its own, the factor by which a row
is off is one for all columns of a lane. Its inverse is a sum over some of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_keys import products_with_weights
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValue, ImpliedValues, Site
from evoengine.evaluate.worker.forensics.lead import Lead, step_lead
from evoengine.evaluate.worker.forensics.reference_steps import (
    ReferenceStep,
    StepRecorder,
)
from evoengine.evaluate.worker.forensics.softmax_weights import in_turn

COLUMNS = (2, 4, 8, 1, 16, 32)  # neighbouring ones of a lane
KEYS = (8, 4, 2, 1, 16, 32)
LANES = (2, 4, 8, 16, 32)
CLOSE = 0.01  # of the squared values that one factor for each lane may leave
FITTED = 0.02  # of the squared difference of the totals
ENTRY = 0.2  # of a count, from a whole number
LEAST_ROWS = 4  # for each lane
LEAST = 0.9
SPOILED = 0.05


@dataclass(frozen=True, eq=False)
class _Totals:
    """What each row is divided by, (rows, lanes), where a lane has `columns` neighbours in turn."""

    columns: int
    lanes: int
    values: torch.Tensor
    known: torch.Tensor  # bool of their shape


class ImpliedTotals:
    """Looks for totals that are not the same for all columns."""

    def __init__(
        self, implied: ImpliedValues, explained: ExplainedShare, recorder: StepRecorder
    ) -> None:
        self._implied = implied
        self._explained = explained
        self._recorder = recorder

    def leads(self) -> Iterator[Lead]:
        """At most one lead for each product with weights of a softmax. Raises TimeUp."""
        for step, value in products_with_weights(self._implied, self._recorder):
            yield from self._of(step, value)

    def _of(self, step: ReferenceStep, value: ImpliedValue) -> Iterator[Lead]:
        right = value.right.reshape(-1, value.right.shape[-1])
        implied = value.implied.reshape(right.shape)
        weights = value.args[0].cpu()
        weights = weights.expand(*value.right.shape[:-2], *weights.shape[-2:])
        rows = weights.reshape(-1, weights.shape[-1])
        totals = _totals(right, implied)
        if totals is None or len(rows) != len(right):
            return
        for keys in KEYS:
            for lanes in LANES:
                counts = _counts(rows, totals, keys, lanes)
                if counts is None:
                    continue
                made = _sums(rows, keys, lanes) @ counts.T
                at = in_turn(totals.columns, totals.lanes)(right.shape[1])
                product = (right / made[:, at]).view(value.right.shape)
                outputs = self._implied.with_values({Site(step.place): product})
                found = outputs and self._explained.of(outputs)
                if not found or found.share < LEAST or found.spoiled > SPOILED:
                    continue
                words = (
                    "the sum (denominator) of the softmax is not the same for all columns of a row:"
                    " the lanes that share a row do not have the same total, as where a shuffle of"
                    " the reduction is missing, or goes to the same lane again. "
                    + _words(counts, totals, keys)
                )
                yield step_lead(words, found.share, step.words)
                return


def _totals(right: torch.Tensor, implied: torch.Tensor) -> _Totals | None:
    """None where no factor for each lane explains the rows, or one for all lanes does."""
    extent = right.shape[1]
    usable = implied.isfinite()
    value = torch.where(usable, implied, torch.zeros_like(implied))
    own = right * usable
    power = float((value - own).square().sum())
    for lanes in LANES[:4]:
        for columns in COLUMNS:
            if extent % (columns * lanes):
                continue
            first, second = (
                one.unflatten(1, (-1, lanes, columns)).transpose(1, 2).flatten(2)
                for one in (own, value)
            )
            size = first.square().sum(2)
            factor = (first * second).sum(2) / size.clamp_min(1e-300)
            left = float((second - factor.unsqueeze(2) * first).square().sum())
            if power and left <= CLOSE * power:
                if float((factor - factor[:, :1]).abs().median(0).values.max()) < 1e-3:
                    return None
                known = (size > 0) & (factor.abs() > 1e-3)
                return _Totals(columns, lanes, 1 / factor.where(known, torch.ones(())), known)
    return None


def _sums(rows: torch.Tensor, keys: int, lanes: int) -> torch.Tensor:
    """The weights of each lane that takes `keys` neighbours in turn, (rows, lanes)."""
    lane = in_turn(keys, lanes)(rows.shape[1])
    return rows @ torch.nn.functional.one_hot(lane, lanes).to(rows.dtype)


def _counts(rows: torch.Tensor, totals: _Totals, keys: int, lanes: int) -> torch.Tensor | None:
    """How often each total counts each lane's weights, (totals, lanes); None where nothing fits."""
    if rows.shape[1] < 2 * keys * lanes or len(rows) < LEAST_ROWS * lanes:
        return None
    sums = _sums(rows, keys, lanes)
    found = []
    for number in range(totals.lanes):
        known = totals.known[:, number]
        if int(known.sum()) < LEAST_ROWS * lanes:
            return None
        target = totals.values[known, number]
        # rows count alike, whether their total is large or small
        scale = 1 / target.abs().clamp_min(1e-6).unsqueeze(1)
        features = sums[known] * scale
        solved = torch.linalg.lstsq(features, (target.unsqueeze(1) * scale)).solution.squeeze(1)
        whole = solved.round()
        if float((solved - whole).abs().max()) > ENTRY or bool((whole < 0).any()):
            return None
        left = (features @ whole - 1).square().mean()
        if float(left) > FITTED or not bool(whole.any()):
            return None
        found.append(whole)
    return torch.stack(found)


def _words(counts: torch.Tensor, totals: _Totals, keys: int) -> str:
    """`Columns 0..3 of every 8 are divided by a sum that counts keys 0..15 of every 32 twice`."""
    period = keys * counts.shape[1]
    said = []
    for times in counts[0].unique().tolist():
        if times == 1:
            continue
        lanes = (counts[0] == times).nonzero().flatten().tolist()
        spans = " and ".join(_span(one * keys, keys) for one in lanes[:4])
        how = {0: "leaves out", 2: "counts twice"}.get(int(times), f"counts {int(times)} times")
        said.append(f"{how} keys {spans} of every {period}")
    columns = totals.columns * totals.lanes
    return (
        f"Columns {_span(0, totals.columns)} of every {columns} are divided by a sum that"
        f" {' and '.join(said) or 'is right'}, the others by another one"
    )


def _span(start: int, count: int) -> str:
    return f"{start}" if count == 1 else f"{start}..{start + count - 1}"
