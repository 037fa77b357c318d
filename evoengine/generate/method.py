"""The protocol of a method of search, and what a prompt sees that sees nothing of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Protocol

from evoengine.generate.operators import OperatorChoice
from evoengine.protocols import Evaluated, Request, nothing_tried
from evoengine.records import Elite, Status


class Method(Protocol):
    """From a request to an operator, its parents and what the prompt may show of the history.

    Both follow from their arguments alone, so a resumed run goes on as if it had not been stopped.
    Parents are elites of the request or of one of its islands, and never one that `visible` leaves
    out. Without any elite the operator is `first`.
    """

    def choose(self, request: Request, operator: str | None = None) -> OperatorChoice:
        """The choice for this trial; with `operator`, the one if that were its operator, for which
        UsageError is raised where the method lacks it or there are too few parents.
        """
        ...

    def visible(self, request: Request, choice: OperatorChoice) -> Request:
        """`request` without what the prompt of `choice` may not show."""
        ...


def as_at_start(request: Request) -> Request:
    """`request` as if nothing had come after the starting kernels: the correct ones are its elites,
    by tier and score.
    """
    return replace(
        request,
        elites=_starting_elites(request),
        recent=request.seeds,
        structures=(),
        tried=nothing_tried,
        trials_without_gain=0,
        islands=(),
        lessons=(),
    )


def _starting_elites(request: Request) -> tuple[tuple[Elite, Evaluated], ...]:
    correct = [item for item in request.seeds if item.outcome.status is Status.correct]
    places: Counter[str] = Counter()
    held = []
    for item in sorted(correct, key=_tier_and_score):
        tier = item.outcome.tier
        places[tier] += 1
        held.append((Elite(tier=tier, place=places[tier], outcome=item.outcome), item))
    return tuple(held)


def _tier_and_score(item: Evaluated) -> tuple[str, float]:
    """Without a score, because it was not evaluated: in the order of the task."""
    score = item.outcome.score
    return item.outcome.tier, score.value if score else 0.0
