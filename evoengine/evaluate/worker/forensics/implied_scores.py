"""How the products of queries and keys must have been computed, through a softmax and the values.

The output's derivative by a score is known: `p_k (v_k - out)`. So Gauss-Newton steps find which
places of q and k meet, alike in all blocks of the depth.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_keys import are_weights
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValue, ImpliedValues, Site
from evoengine.evaluate.worker.forensics.lead import Lead, step_lead
from evoengine.evaluate.worker.forensics.product_pairing import Pairing
from evoengine.evaluate.worker.forensics.reference_steps import (
    ReferenceStep,
    StepRecorder,
    steps_in_order,
)

# places of a block of the depth, and neighbours that stay together
SHAPES = (
    (8, 8),
    (8, 1),
    (4, 16),
    (8, 2),
    (2, 32),
    (4, 2),
    (4, 8),
    (8, 4),
    (16, 1),
    (2, 8),
    (2, 16),
)
ROUNDS = 10
HOPELESS, HOPELESS_AFTER = 0.6, 3  # of the squared difference, left after so many rounds
ROWS = 64  # of queries that are sampled
COLUMNS = 32  # of the output
DONE = 1e-4
FITTED = 0.05  # of the squared difference that may be left
ENTRY = 0.25  # of a pairing, from a whole number
LARGEST = 1.0  # of a step, for each entry
LEAST = 0.4
SPOILED = 0.05


@dataclass(frozen=True, eq=False)
class ScoredAttention:
    """Sampled queries of one attention, float64: q (rows, depth), k (rows, keys, depth), v (rows,
    keys, columns), and the output (rows, columns) as it must have been. `factor` is the derivative
    of a score by its product.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    target: torch.Tensor
    row: torch.Tensor  # which rows of all
    column: torch.Tensor
    factor: float


class ImpliedScores:
    """Looks for products of queries and keys that explain a wrong output."""

    def __init__(
        self, implied: ImpliedValues, explained: ExplainedShare, recorder: StepRecorder
    ) -> None:
        self._implied = implied
        self._explained = explained
        self._recorder = recorder

    def leads(self) -> Iterator[Lead]:
        """At most one lead. Raises TimeUp."""
        steps = [one for one in steps_in_order(self._recorder) if one.name == "matmul"]
        for first, last in itertools.pairwise(steps):
            fit = self._implied.fitted([Site(last.place)])
            if fit is None or not are_weights(fit.values[0].args[0]):
                continue
            lead = self._of(first, fit.values[0])
            if lead is not None:
                yield lead
                return

    def _of(self, step: ReferenceStep, last: ImpliedValue) -> Lead | None:
        site = Site(step.place)
        seen = self._implied.seen([site, last.site], {})
        if seen is None:
            return None
        q, k = seen[0].args[:2]
        weights = last.args[0]
        product = None if seen[0].right is None else seen[0].right.cpu()
        if product is None or product.numel() != weights.numel() or k.dim() != q.dim():
            return None
        sample = self._sampled(site, q, k, product, last)
        if sample is None:
            return None
        for size, width in SHAPES:
            if size * width > q.shape[-1]:
                continue
            pairing = self._solved(site, last.site, q, k, sample, size, width)
            if pairing is None:
                continue
            outputs = self._implied.with_values({site: pairing.of(q) @ k})
            found = None if outputs is None else self._explained.of(outputs)
            if found is None or found.share < LEAST or found.spoiled > SPOILED:
                continue
            names = step.operand(0) or "q", step.operand(1) or "k"
            said = (
                f"the elements of {names[0]} and {names[1]} meet wrongly in the products of queries"
                f" and keys, {pairing.words(*names)}, as with a wrong fragment layout, register or"
                " address"
            )
            return step_lead(said, found.share, step.words)
        return None

    def _sampled(
        self,
        site: Site,
        q: torch.Tensor,
        k: torch.Tensor,
        product: torch.Tensor,
        last: ImpliedValue,
    ) -> ScoredAttention | None:
        values, target = last.args[1], last.implied
        keys = product.shape[-1]
        batch = product.shape[:-2]
        queries = q.expand(*batch, *q.shape[-2:]).reshape(-1, q.shape[-1])
        depth = k.expand(*batch, *k.shape[-2:]).reshape(-1, k.shape[-2], keys)
        known = values.expand(*target.shape[:-2], *values.shape[-2:]).reshape(
            -1, values.shape[-2], values.shape[-1]
        )
        outputs = target.reshape(-1, target.shape[-1])
        if len(outputs) != len(queries) or len(known) != len(depth):
            return None
        factor = self._factor(site, product, last)
        if factor is None:
            return None
        wrong = (target - last.own).reshape(outputs.shape).square().sum(1)
        row = wrong.topk(min(ROWS, len(wrong))).indices
        plane = row // product.shape[-2]
        column = torch.arange(outputs.shape[1])[:: max(1, outputs.shape[1] // COLUMNS)]
        return ScoredAttention(
            queries[row],
            depth[plane].mT,
            known[plane][:, :, column],
            outputs[row][:, column],
            row,
            column,
            factor,
        )

    def _factor(self, site: Site, product: torch.Tensor, last: ImpliedValue) -> float | None:
        """By how much a score grows with its product: from ratios of weights in a row."""
        generator = torch.Generator().manual_seed(0)
        nudge = 1e-4 * torch.randn(product.shape, generator=generator, dtype=torch.float64)
        seen = self._implied.seen([site, last.site], {site: product + nudge})
        if seen is None:
            return None
        before, after = last.args[0], seen[1].args[0]
        grown = (after.log() - before.log()).reshape(product.shape)
        usable = grown.isfinite() & (before.reshape(product.shape) > 1e-12)
        count = usable.sum(-1, keepdim=True).clamp_min(1)

        def centred(value: torch.Tensor) -> torch.Tensor:
            kept = value.masked_fill(~usable, 0)
            mean = kept.sum(-1, keepdim=True) / count
            found: torch.Tensor = (kept - mean).masked_fill(~usable, 0)
            return found

        other = centred(nudge)
        power = float(other.square().sum())
        return float((centred(grown) * other).sum()) / power if power else None

    def _solved(
        self,
        site: Site,
        last: Site,
        q: torch.Tensor,
        k: torch.Tensor,
        sample: ScoredAttention,
        size: int,
        width: int,
    ) -> Pairing | None:
        eye = torch.eye(size, dtype=torch.float64)
        times = 0 * eye  # equal weights: from there the steps reach far pairings, too
        first = power = None
        block = size * width
        whole = q.shape[-1] // block * block
        cut_q = sample.q[:, :whole].unflatten(1, (-1, size, width))
        cut_k = sample.k[..., :whole].unflatten(2, (-1, size, width))
        for number in range(ROUNDS):
            pairing = Pairing(size, width, times)
            seen = self._implied.seen([site, last], {site: pairing.of(q) @ k})
            if seen is None or seen[1].args[0].isnan().any():
                return None
            weights = seen[1].args[0].reshape(-1, sample.k.shape[1])[sample.row]
            output = torch.einsum("rk,rkc->rc", weights, sample.v)
            left = (sample.target - output).nan_to_num(0.0, 0.0, 0.0)
            power = float(left.square().sum())
            first = first or power
            if power > 4 * first or (number >= HOPELESS_AFTER and power > HOPELESS * first):
                return None
            if power <= DONE * first:
                break
            spread = weights.unsqueeze(-1) * (sample.v - output.unsqueeze(1))
            inner = torch.einsum("rkc,rktjw->rctjw", spread, cut_k)
            slopes = sample.factor * torch.einsum("rtiw,rctjw->rcij", cut_q, inner)
            features = slopes.reshape(-1, size * size)
            gram = features.T @ features
            gram += 1e-6 * float(gram.diagonal().mean()) * torch.eye(len(gram), dtype=gram.dtype)
            step = torch.linalg.solve_ex(gram, features.T @ left.reshape(-1)).result
            times = times + step.view(size, size).clamp(-LARGEST, LARGEST)
        if not first or power is None or power > FITTED * first:
            return None
        rounded = times.round()
        if float((times - rounded).abs().max()) > ENTRY or torch.equal(rounded, eye):
            return None
        return Pairing(size, width, rounded)
