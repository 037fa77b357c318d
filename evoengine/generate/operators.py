"""Which operator a trial uses, and on which parents.

After EvoEngineer-Full (arXiv 2510.03760): a population begins with five samples that
see the task but need not follow a parent; from then on each trial is, at random, a
crossover of two elites or a mutation of one. Here a parent is drawn by its place, and a
precision tier is chosen first, because elites compete within their tier.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from evoengine.errors import UsageError
from evoengine.protocols import Evaluated, Request
from evoengine.records import Elite

FIRST_SAMPLES = 5  # arXiv 2510.03760, section 5.1: initialised from 5 samples
FEW_ELITES = 2  # crossover needs two
CROSSOVER_SHARE = 0.5  # the paper draws as many offspring from crossover as from mutation


@dataclass(frozen=True)
class OperatorChoice:
    """An operator with its parents, best first, and the tier that the new kernel is meant for."""

    operator: str  # first, mutate, crossover
    tier: str
    parents: tuple[Evaluated, ...] = ()

    @property
    def trials(self) -> tuple[int, ...]:
        """The trial numbers of the parents."""
        return tuple(parent.outcome.trial for parent in self.parents)


def choose(request: Request) -> OperatorChoice:
    """The operator for this trial and its parents; the same for the same request."""
    if _sources(request) < FEW_ELITES or request.trial - len(request.seeds) < FIRST_SAMPLES:
        return choose_as("first", request)
    return _with_parents(request, None)


def choose_as(operator: str, request: Request) -> OperatorChoice:
    """The choice for this trial if its operator were `operator`; raises UsageError where there are
    too few elites for it.
    """
    if operator == "first":
        return OperatorChoice("first", _rng(request).choice(_open_tiers(request)))
    needed = {"mutate": 1, "crossover": FEW_ELITES}[operator]
    if _sources(request) < needed:
        kernels = "kernel" if needed == 1 else "kernels with different sources"
        raise UsageError(
            f"{operator} needs {needed} correct {kernels}, there {_are(_sources(request))}"
        )
    return _with_parents(request, operator)


def _with_parents(request: Request, wanted: str | None) -> OperatorChoice:
    rng = _rng(request)
    tier = rng.choice(list(dict.fromkeys(elite.tier for elite, _ in request.elites)))
    first = _draw(rng, [pair for pair in request.elites if pair[0].tier == tier])
    drawn = "mutate" if rng.random() >= CROSSOVER_SHARE else "crossover"
    if (wanted or drawn) == "mutate":
        return OperatorChoice("mutate", tier, (first,))
    return OperatorChoice("crossover", tier, (first, _partner(rng, request, tier, first)))


def _rng(request: Request) -> random.Random:
    return random.Random(request.seed)  # noqa: S311 - reproducible on purpose


def _sources(request: Request) -> int:
    """How many different sources the elites have."""
    return len({evaluated.outcome.source_digest for _, evaluated in request.elites})


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count or 'none'}"


def _open_tiers(request: Request) -> list[str]:
    """The tiers without an elite, else all of them."""
    held = {elite.tier for elite, _ in request.elites}
    return [tier for tier in request.task.tiers if tier not in held] or list(request.task.tiers)


def _draw(rng: random.Random, pairs: list[tuple[Elite, Evaluated]]) -> Evaluated:
    """One of `pairs` at random; place n has the weight 1/n."""
    return rng.choices(
        [evaluated for _, evaluated in pairs], weights=[1 / elite.place for elite, _ in pairs]
    )[0]


def _partner(rng: random.Random, request: Request, tier: str, first: Evaluated) -> Evaluated:
    """A parent with another source than `first`, of `tier` where there is one."""
    others = [
        pair
        for pair in request.elites
        if pair[1].outcome.source_digest != first.outcome.source_digest
    ]
    return _draw(rng, [pair for pair in others if pair[0].tier == tier] or others)
