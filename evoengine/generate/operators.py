"""Operators and their parents: what the methods of search choose from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evoengine.errors import UsageError
from evoengine.generate.directions import DirectionDraw, direction_draw
from evoengine.generate.tier_shares import draw_tier
from evoengine.protocols import Evaluated, Request
from evoengine.records import Elite

FIRST_SAMPLES = 5  # arXiv 2510.03760, section 5.1: initialised from 5 samples
FEW_ELITES = 2  # crossover needs two
CROSSOVER_SHARE = 0.5  # the paper draws as many offspring from crossover as from mutation
# A kernel that takes more than so many times as long has little to give to another. Our choice.
WEAK = 2.0
PLATEAU = 20  # trials without gain: with half of them tuned, ten replies

Held = tuple[Elite, Evaluated]


@dataclass(frozen=True)
class OperatorChoice:
    """An operator with its parents, best first, and the tier that the new kernel is meant for."""

    operator: str  # first, mutate, crossover
    tier: str
    parents: tuple[Evaluated, ...] = ()
    direction: DirectionDraw | None = None  # of a first sample

    @property
    def trials(self) -> tuple[int, ...]:
        """The trial numbers of the parents."""
        return tuple(parent.outcome.trial for parent in self.parents)


def first(request: Request, tier: str, always: bool = False) -> OperatorChoice:
    """A first sample for `tier`; `always`: in a run that has no other trials."""
    # without an elite now, there was none for the trials before this one
    certain = always or not request.elites
    siblings = [
        number
        for number in range(request.asking_settled, request.asking)
        if certain or number < FIRST_SAMPLES
    ]
    return OperatorChoice("first", tier, direction=direction_draw(request, siblings))


def improve_best(method: str, request: Request, operator: str | None) -> OperatorChoice:
    """A mutation of the best kernel of the trial's tier, a first sample where it has none; for the
    methods without a population. `operator` as in Method.choose.
    """
    if operator == "crossover":
        raise UsageError(f"the method {method} has no crossover; it has first and mutate")
    tier = draw_tier(rng_of(request), request)
    best = {elite.tier: evaluated for elite, evaluated in reversed(request.elites)}
    if operator == "mutate" and not best:
        raise UsageError("mutate needs 1 correct kernel, there are none")
    if operator == "first" or (operator is None and tier not in best):
        return first(request, tier)
    tier = tier if tier in best else min(best)
    return OperatorChoice("mutate", tier, (best[tier],))


def parents_only(request: Request, choice: OperatorChoice) -> Request:
    """`request` whose only elites are the parents."""
    return replace(
        request,
        elites=tuple(pair for pair in request.elites if pair[0].outcome.trial in choice.trials),
        islands=(),
    )


def is_opening(request: Request) -> bool:
    """Whether the trial is one of those that open a population."""
    return request.asking < FIRST_SAMPLES


def rng_of(request: Request) -> random.Random:
    """The random choices of a trial, always the same."""
    return random.Random(request.seed)  # noqa: S311 - reproducible on purpose


def is_plateau(request: Request) -> bool:
    """Whether there was no gain for long."""
    return request.trials_without_gain >= PLATEAU


def count_sources(elites: Sequence[Held]) -> int:
    """How many different sources they have."""
    return len({evaluated.outcome.source_digest for _, evaluated in elites})


def are(count: int) -> str:
    """`is 1`, `are 2`, `are none`."""
    return "is 1" if count == 1 else f"are {count or 'none'}"


def draw(rng: random.Random, elites: Sequence[Held]) -> Evaluated:
    """One of `elites` at random; place n has the weight 1/n."""
    return rng.choices(
        [evaluated for _, evaluated in elites], weights=[1 / elite.place for elite, _ in elites]
    )[0]


def partner(rng: random.Random, elites: Sequence[Held], tier: str, parent: Evaluated) -> Evaluated:
    """A parent with another source than `parent`, of `tier` where there is one, and not weak where
    there is one.
    """
    others = other_sources(elites, parent)
    near = [pair for pair in others if pair[0].tier == tier] or others
    return draw(rng, [pair for pair in near if not is_weak(pair[1], parent)] or near)


def other_sources(elites: Sequence[Held], parent: Evaluated) -> list[Held]:
    """Those of `elites` with another source than `parent`."""
    digest = parent.outcome.source_digest
    return [pair for pair in elites if pair[1].outcome.source_digest != digest]


def is_weak(other: Evaluated, parent: Evaluated) -> bool:
    """Whether one of the two takes more than WEAK times as long as the other."""
    times = sorted((_time(other), _time(parent)))
    return times[0] > 0 and times[1] > WEAK * times[0]


def _time(evaluated: Evaluated) -> float:
    """The score, which is a time or a ratio of times; 0 for a kernel that was not evaluated."""
    score = evaluated.outcome.score
    return score.value if score else 0.0
