"""The causes of wrong sums, means and maxima, from what they must have been."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.changed_reductions import ADDED, EXTREMES
from evoengine.evaluate.worker.forensics.changed_step import BINARY, reduced_axes
from evoengine.evaluate.worker.forensics.explained_share import ExplainedShare
from evoengine.evaluate.worker.forensics.implied_sources import (
    of_other_tensors,
    sources,
)
from evoengine.evaluate.worker.forensics.implied_terms import counted_terms
from evoengine.evaluate.worker.forensics.implied_values import (
    RESULT,
    ImpliedValue,
    ImpliedValues,
    Site,
)
from evoengine.evaluate.worker.forensics.lead import WHOLE, Lead, begun
from evoengine.evaluate.worker.forensics.merged_moments import merged_parts
from evoengine.evaluate.worker.forensics.reference_steps import (
    ReferenceStep,
    StepRecorder,
    steps_in_order,
)
from evoengine.records import DiagnosisKind

FITTED = 0.9  # of the wrong elements, or of the squared error: less is another mistake
SHARED = 4  # outputs for each statistic at least: with fewer, anything is explained
SPOILED = 0.05
LEAST_ALONE = 16  # statistics that are outputs themselves: each has a value that explains it
EXACT = 0.002  # what is then left by a guess that is no chance
FITTED_NUMBER = 20.0  # the cost of a guess whose numbers were fitted
# the cost of a mistake in a merge, of which there are many; of one that spoils two statistics
MERGED, MERGED_TOGETHER = 2.0, 0.5
EXACT_RANK = 1e-6  # less is noise
MOST_STATISTICS = 12
MOST_OPERANDS = 16
MOST_GUESSES = 8  # that are computed for one statistic
SURE, UNSURE = 1.0, 0.6
MOST_OF_UNSURE = 0.95  # a statistic that is wrong for no known reason is no explanation


@dataclass(frozen=True, eq=False)
class Guess:
    """What a statistic may be, of its shape; `words` follow its name, or "the sum of" it."""

    name: str
    words: str
    value: torch.Tensor
    rank: float  # the squared difference that is left, and more for strange ones; less is better


class ImpliedStatistics:
    """Looks for statistics that explain a wrong output where everything else is right."""

    def __init__(
        self,
        implied: ImpliedValues,
        explained: ExplainedShare,
        recorder: StepRecorder,
        tiles: Sequence[int],
        numbers: Mapping[str, float],
    ) -> None:
        """`recorder` has seen the reference of the window of `implied`."""
        self._implied = implied
        self._explained = explained
        self._recorder = recorder
        self._tiles = tiles
        self._numbers = numbers

    def leads(self) -> Iterator[Lead]:
        """One lead for each statistic, or pair of them, that explains the output. Raises TimeUp."""
        every = steps_in_order(self._recorder)
        steps = [one for one in every if one.name in ADDED | EXTREMES][:MOST_STATISTICS]
        found = False
        for step in steps:
            for lead in self._of({Site(step.place): step}):
                yield lead
                found |= lead.is_whole
        if found:
            return
        for first, second in itertools.pairwise(steps):
            yield from self._of({Site(first.place): first, Site(second.place): second})
        made = {Site(step.place) for step in steps}
        for site in self._operands(every, made):
            yield from self._of({site: self._recorder.found[site.place]})

    def _operands(self, every: Sequence[ReferenceStep], made: Collection[Site]) -> Iterator[Site]:
        """Operands that are broadcast, each as one step uses it."""
        shapes = {one.place: one.shape for one in self._recorder.results}
        names = {step.place: step.name for step in every}
        count = 0
        for one in self._recorder.operands:
            result = shapes.get(one.place)
            if names[one.place] not in BINARY or result is None or count == MOST_OPERANDS:
                continue
            if 1 < one.shape.numel() <= result.numel() // SHARED:
                count += 1
                yield Site(one.place, one.number)

    def _of(self, steps: Mapping[Site, ReferenceStep]) -> Iterator[Lead]:
        fit = self._implied.fitted(list(steps))
        if fit is None:
            return
        outputs = sum(value.numel() for value in fit.outputs.values())
        few = any(one.right.numel() * SHARED > outputs for one in fit.values)
        if few and any(one.right.numel() < LEAST_ALONE for one in fit.values):
            return
        explained = self._explained.of(fit.outputs)
        if max(explained.share, explained.reduction) < FITTED or explained.spoiled > SPOILED:
            return
        chosen: dict[Site, Guess] = {}
        for value in fit.values:
            guess = self._best(steps[value.site], value, chosen, fit.values)
            if guess is None:
                break
            chosen[value.site] = guess
        if few and (len(chosen) < len(steps) or max(one.rank for one in chosen.values()) > EXACT):
            return
        yield self._lead(steps, fit.values, chosen, explained.share)

    def _best(
        self,
        step: ReferenceStep,
        value: ImpliedValue,
        chosen: Mapping[Site, Guess],
        all_values: Sequence[ImpliedValue],
    ) -> Guess | None:
        """The guess with which the output comes out best, the earlier one of equals; the other
        statistics are those chosen, or what they must be.
        """
        held = {one.site: one.implied for one in all_values}
        held |= {site: guess.value for site, guess in chosen.items()}
        best: tuple[float, Guess] | None = None
        # a wrong divisor of a mean alone leaves a variance that follows from it
        merged_cost = MERGED if len(all_values) == 1 else MERGED_TOGETHER
        guesses = sorted(self._guesses(step, value, merged_cost), key=lambda guess: guess.rank)
        for guess in guesses[:MOST_GUESSES]:
            outputs = self._implied.with_values({**held, value.site: guess.value})
            if outputs is None:
                continue
            found = self._explained.of(outputs)
            rank = max(found.share, found.reduction) - found.spoiled
            if rank > (best[0] + 0.005 if best else FITTED):
                best = rank, guess
        return best[1] if best else None

    def _guesses(
        self, step: ReferenceStep, value: ImpliedValue, merged_cost: float
    ) -> Iterator[Guess]:
        right, implied, own = (one.flatten() for one in (value.right, value.implied, value.own))
        called = self._called(step, value)
        terms = _terms(value) if value.site.number == RESULT else None
        count = 1 if terms is None else terms.shape[1]
        power = float((implied - own).square().sum()) or 1.0

        def rank(made: torch.Tensor, cost: float) -> float:
            left = float((implied - made.flatten()).square().sum()) / power
            return max(left, EXACT_RANK) * cost

        if value.site.number == RESULT and step.name in ("sum", "mean") and terms is not None:
            each = count if step.name == "mean" else 1
            found = counted_terms(terms, (implied - right) * each, self._tiles)
            if found is not None:
                made = (terms * found.weights()).sum(1) / each
                words = found.words("element")
                cost = 2.0 if found.is_count else FITTED_NUMBER
                yield Guess(
                    f"the sum of {called}", words, made.view(value.right.shape), rank(made, cost)
                )
        if step.name in EXTREMES:
            count = 1
        others, tensors = self._others(step, called, value, terms)
        if value.site.number == RESULT and step.name == "mean" and terms is not None:
            for words, merged in merged_parts(terms, own, implied, tensors, self._tiles):
                if merged.numel() > 1 and bool((merged == merged.flatten()[0]).all()):
                    continue  # one number for all rows comes from no merge of their parts
                shaped = merged.reshape(value.right.shape)
                yield Guess(called, words, shaped, rank(shaped, merged_cost))
        for start in (own, right) if not torch.equal(own, right) else (own,):
            for one in sources(start, implied, count, self._numbers, others):
                shaped = one.value.reshape(value.right.shape)
                words = one.words
                if value.site.number != RESULT:  # whose elements are no rows
                    words = words.replace("rows", "elements").replace("row", "element")
                yield Guess(called, words, shaped, rank(shaped, one.cost))

    def _called(self, step: ReferenceStep, value: ImpliedValue) -> str:
        """Its name, and that of the output that it is, where there are several."""
        name, references = _called(step, value.site), self._implied.references
        for output, reference in references.items():
            same = value.site.number == RESULT and reference.shape == value.own.shape
            if len(references) > 1 and same and torch.allclose(reference.double().cpu(), value.own):
                return f"{output}, {name},"
        return name

    def _others(
        self, step: ReferenceStep, called: str, value: ImpliedValue, terms: torch.Tensor | None
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Statistics of the same rows that the kernel may have taken, and tensors of the shape of
        `terms`, by name.
        """
        found: dict[str, torch.Tensor] = {}
        tensors: dict[str, torch.Tensor] = {}
        steps = {one.place: one for one in steps_in_order(self._recorder)}
        shape = value.args[0].shape if value.args else None
        for seen in self._recorder.known_before(step.place):
            source = steps[seen.place]
            name = source.result if seen.number < 0 else source.operand(seen.number)
            tensor = self._recorder.value_of(seen)
            if not name or tensor is None:
                continue
            if tensor.shape == value.right.shape and name != called:
                found.setdefault(name, tensor.flatten().cpu())
            elif tensor.shape == shape and terms is not None:
                tensors.setdefault(name, _rows(tensor, value))
        if terms is not None:
            found.update(of_other_tensors(tensors, terms))
        return found, tensors

    def _lead(
        self,
        steps: Mapping[Site, ReferenceStep],
        values: Sequence[ImpliedValue],
        chosen: Mapping[Site, Guess],
        share: float,
    ) -> Lead:
        held = {one.site: one.implied for one in values}
        held |= {site: guess.value for site, guess in chosen.items()}
        outputs = self._implied.with_values(held)
        if outputs is not None:
            found = self._explained.of(outputs)
            share = max(found.share, 0.85 * found.reduction)
        if len(chosen) < len(steps):
            share = min(share, MOST_OF_UNSURE)
        said = [_said(list(chosen.values()))] if chosen else []
        unknown = [_called(steps[site], site) for site in steps if site not in chosen]
        if unknown:
            said.append(f"{' and '.join(unknown)} {'are' if len(unknown) > 1 else 'is'} wrong")
        where = ", ".join(step.words for step in steps.values())
        words = " and ".join(dict.fromkeys(said))
        sure = "" if share >= WHOLE else "Probably "
        weight = SURE if not unknown else UNSURE
        return Lead(
            DiagnosisKind.changed_step,
            begun(
                f"{sure}{words}: the output {'equals' if share >= WHOLE else 'is nearly'} the"
                f" reference with it so, all else is right ({where})."
            ),
            share,
            weight,
            {"steps": [step.words for step in steps.values()]},
        )


def _terms(value: ImpliedValue) -> torch.Tensor | None:
    """What was reduced, float64 (rows, extent)."""
    if not value.args or not isinstance(value.args[0], torch.Tensor):
        return None
    found = _rows(value.args[0], value)
    return found if found.shape[0] == value.right.numel() else None


def _rows(tensor: torch.Tensor, value: ImpliedValue) -> torch.Tensor:
    axes = reduced_axes(value.args, value.kwargs)
    kept = [axis for axis in range(tensor.dim()) if axis not in axes]
    moved = tensor.detach().permute(*kept, *axes).cpu().double()
    return moved.reshape(math.prod(tensor.shape[axis] for axis in kept), -1)


def _said(guesses: Sequence[Guess]) -> str:
    """`mean and variance are taken from the next row`."""
    alike = {guess.words for guess in guesses}
    if len(guesses) > 1 and len(alike) == 1 and (words := alike.pop()).startswith("is "):
        names = " and ".join(guess.name for guess in guesses)
        return f"{names} are {words.removeprefix('is ')}"
    return " and ".join(f"{guess.name} {guess.words}" for guess in guesses)


def _called(step: ReferenceStep, site: Site) -> str:
    """`total (the sum of the softmax)`."""
    if site.number != RESULT:
        return step.operand(site.number) or f"operand {site.number + 1}"
    if "softmax" not in step.function and step.function != "cross_entropy":
        return step.result
    what = "maximum" if step.name in EXTREMES else "sum, denominator"
    return f"{step.result} (the {what} of the {step.function})"
