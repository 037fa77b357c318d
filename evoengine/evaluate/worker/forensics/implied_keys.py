"""Which keys an attention has left out or counted twice, in its sums of weights and values alike.

With weights p and values v, an output of `sum_k c_k p_k v_k / sum_k c_k p_k` fulfils
`sum_k c_k p_k (v_k - out) = 0` for every row and column. So the counts are the vector for which
that is nearest to 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch

from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_values import ImpliedValue, ImpliedValues, Site
from evoengine.evaluate.worker.forensics.lead import Lead, step_lead
from evoengine.evaluate.worker.forensics.reference_steps import (
    ReferenceStep,
    StepRecorder,
    steps_in_order,
)

MOST_KEYS = 512
EQUATIONS = 4  # for each key
ENTRY = 0.3  # of a count, from a whole number
LEAST = 0.4
SPOILED = 0.05
ROWS = (16, 32, 64, 128)  # of a tile that has counts of its own
FEW = 4  # keys that are named one by one
_TAIL = (
    " (the tail, what is left over beyond whole tiles or parts, as where their number or size is"
    " rounded down)"
)
GROUP = 8  # keys that such a tile takes or leaves together


class ImpliedKeys:
    """Looks for keys with wrong counts, for all rows alike, or for tiles of rows."""

    def __init__(
        self,
        implied: ImpliedValues,
        explained: ExplainedShare,
        recorder: StepRecorder,
    ) -> None:
        self._implied = implied
        self._explained = explained
        self._recorder = recorder

    def leads(self) -> Iterator[Lead]:
        """A lead for each product with weights of a softmax. Raises TimeUp."""
        for step, value in products_with_weights(self._implied, self._recorder):
            yield from self._of(step, value)

    def _of(self, step: ReferenceStep, value: ImpliedValue) -> Iterator[Lead]:
        weights, values = value.args[0].cpu(), value.args[1].cpu()
        if not 2 < weights.shape[-1] <= MOST_KEYS or values.dim() < 2:
            return
        for words, counts in self._guesses(weights, values, value.implied):
            other = weights * counts
            other = other / other.sum(-1, keepdim=True).clamp_min(1e-300)
            outputs = self._implied.with_values({Site(step.place, 0): other})
            if outputs is None:
                continue
            found = self._explained.of(outputs)
            share = max(found.share, 0.85 * found.reduction if found.reduction > 0.9 else 0.0)
            if share < LEAST or found.spoiled > SPOILED:
                continue
            said = f"{words}, in the sum of the softmax and in that of the values alike"
            yield step_lead(said, share, step.words)
            return

    def _guesses(
        self, weights: torch.Tensor, values: torch.Tensor, output: torch.Tensor
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Counts that are broadcast to the weights, with words."""
        counts = _counts(weights, values, output, 1)
        if counts is not None:
            yield _words(counts), counts
        rows = weights.shape[-2]
        for size in ROWS:
            if size >= rows:
                break
            whole = torch.ones(rows, weights.shape[-1], dtype=torch.float64)
            said = []
            for start in range(0, rows, size):
                part = slice(start, min(rows, start + size))
                own = _counts(weights[..., part, :], values, output[..., part, :], GROUP)
                if own is not None:
                    whole[part] = own
                    last = min(rows, start + size) - 1
                    said.append(f"for rows {start}..{last} {_words(own)}")
            if said and not self._implied.window.is_scattered:
                yield f"{'; '.join(said[:2])}{'; and so on' if len(said) > 2 else ''}", whole
            elif said:
                yield f"in each tile of {size} rows other keys are left out or counted twice", whole


def products_with_weights(
    implied: ImpliedValues, recorder: StepRecorder
) -> Iterator[tuple[ReferenceStep, ImpliedValue]]:
    """The products whose first operand is the weights of a softmax, with what each must have been.
    Raises TimeUp.
    """
    for step in steps_in_order(recorder):
        if step.name == "matmul":
            fit = implied.fitted([Site(step.place)])
            if fit is not None and are_weights(fit.values[0].args[0]):
                yield step, fit.values[0]


def are_weights(value: torch.Tensor) -> bool:
    """Whether the rows of an operand sum to one, as those of a softmax do."""
    sums = value.sum(-1)
    return bool((value >= 0).all()) and bool(((sums - 1).abs() < 1e-6).all())


def _counts(
    weights: torch.Tensor, values: torch.Tensor, output: torch.Tensor, group: int
) -> torch.Tensor | None:
    """How often each key counts, (keys,), one number for every `group`; None where it is once."""
    keys = weights.shape[-1]
    batch = output.shape[:-2]
    p = weights.expand(*batch, *weights.shape[-2:]).reshape(-1, weights.shape[-2], keys)
    v = values.expand(*batch, *values.shape[-2:]).reshape(-1, keys, values.shape[-1])
    out = output.reshape(-1, *output.shape[-2:])
    generator = torch.Generator().manual_seed(0)
    unknowns = -(-keys // group)
    at = torch.randperm(out.numel(), generator=generator)[: EQUATIONS * unknowns + 64]
    plane, place = at // (out.shape[1] * out.shape[2]), at % (out.shape[1] * out.shape[2])
    row, column = place // out.shape[2], place % out.shape[2]
    matrix = p[plane, row] * (v[plane, :, column] - out[plane, row, column].unsqueeze(-1))
    matrix = matrix / p[plane, row].square().sum(-1, keepdim=True).sqrt().clamp_min(1e-300)
    matrix = torch.nn.functional.pad(matrix, (0, -keys % group)).unflatten(-1, (-1, group)).sum(-1)
    seen = matrix.square().sum(0)
    known = seen > 1e-6 * float(seen.max())
    if int(known.sum()) < 2:
        return None
    gram = matrix[:, known].T @ matrix[:, known]
    sizes, vectors = torch.linalg.eigh(gram)
    whole = _whole_numbers(vectors[:, 0])
    if whole is None or bool((whole == 1).all()):
        return None
    if float(sizes[0]) > 0.1 * float(gram.sum().abs() / len(gram)):
        return None
    counts = torch.ones(unknowns, dtype=torch.float64)
    counts[known] = whole
    return counts.repeat_interleave(group)[:keys]


def _whole_numbers(vector: torch.Tensor) -> torch.Tensor | None:
    """The counts to which the vector is proportional: the usual key counts once, or the one that
    counts least; None where neither gives whole numbers.
    """
    sizes = vector.abs()
    usual = float(sizes.quantile(0.5))
    least = float(sizes[sizes > 0.1 * float(sizes.max())].quantile(0.02))
    for unit in (usual or float(sizes.max()), least):
        counts = vector / (unit if float(vector.median()) >= 0 else -unit)
        whole = counts.round()
        off = float((counts - whole).abs().quantile(0.9))
        if off <= ENTRY * max(1.0, unit / usual if usual else 1.0) and not bool((whole < 0).any()):
            return whole
    return None


def _words(counts: torch.Tensor) -> str:
    """`keys 32..63 of every 64 are left out`, `the last key (76 of 77) is left out: the tail`."""
    said = []
    for times in counts.unique().tolist():
        if times == 1:
            continue
        chosen = counts == times
        which, is_one = _which(chosen), int(chosen.sum()) == 1
        how = {0: "left out", 2: "counted twice"}.get(int(times), f"counted {int(times)} times")
        tail = _TAIL if times == 0 and _is_at_the_end(chosen) else ""
        said.append(f"{which} {'is' if is_one else 'are'} {how}{tail}")
    return " and ".join(said)


def _is_at_the_end(chosen: torch.Tensor) -> bool:
    """Whether the last ones are chosen, and no others."""
    count = int(chosen.sum())
    return bool(chosen[len(chosen) - count :].all())


def _which(chosen: torch.Tensor) -> str:
    keys = chosen.nonzero().flatten().tolist()
    if len(keys) == 1 and keys[0] == len(chosen) - 1:
        return f"the last key ({keys[0]} of {len(chosen)})"
    if len(keys) <= FEW:
        return f"{'key' if len(keys) == 1 else 'keys'} {', '.join(map(str, keys))} of {len(chosen)}"
    runs = _runs(keys)
    spans = " and ".join(f"{start}..{stop - 1}" for start, stop in runs[:FEW])
    steps = {second[0] - first[0] for first, second in itertools.pairwise(runs)}
    if len(steps) == 1:
        start, stop = runs[0]
        period = steps.pop()
        which = "first " if start == 0 else "last " if stop == period else ""
        part = f" (the {which}part, tile or warp of each)" if which else ""
        return f"keys {start}..{stop - 1} of every {period}{part}"
    if len(runs) == 1 and keys[0] == 0:
        return f"the first {len(keys)} keys ({spans} of {len(chosen)})"
    if len(runs) == 1 and keys[-1] == len(chosen) - 1:
        return f"the last {len(keys)} keys ({spans} of {len(chosen)})"
    more = ", and so on," if len(runs) > FEW else ""
    return f"keys {spans}{more} of {len(chosen)}"


def _runs(keys: Sequence[int]) -> list[tuple[int, int]]:
    """Start and end of what is without a gap."""
    starts = [key for at, key in enumerate(keys) if at == 0 or keys[at - 1] != key - 1]
    ends = [
        key + 1 for at, key in enumerate(keys) if at + 1 == len(keys) or keys[at + 1] != key + 1
    ]
    return list(zip(starts, ends, strict=True))
