"""EvoEngineer-Full (arXiv 2510.03760): good kernels, insights, crossover and mutation.

A population begins with five samples that see the task but need not follow a parent; from then on
each trial is, at random, a crossover of two elites or a mutation of one. Here a parent is drawn by
its place, and a precision tier is chosen first, because elites compete within their tier; and on a
plateau first samples come again.
"""

from __future__ import annotations

from evoengine.errors import UsageError
from evoengine.generate import operators
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.tier_shares import draw_tier
from evoengine.protocols import Request

NEW_SHARE = 0.5  # of the trials on a plateau: the other half goes on with what there is


class Full:
    """All elites may be parents, and all are shown."""

    def choose(self, request: Request, operator: str | None = None) -> OperatorChoice:
        """A first sample while the population is opened, or where the tier holds nothing; then
        crossover or mutation, and on a plateau a first sample in some of the trials.
        """
        rng = operators.rng_of(request)
        tier = draw_tier(rng, request)
        held = [pair for pair in request.elites if pair[0].tier == tier]
        sources = operators.count_sources(request.elites)
        is_stuck = operators.is_plateau(request) and rng.random() < NEW_SHARE
        anew = operators.is_opening(request) or not held or is_stuck
        if operator == "first" or (operator is None and anew):
            return operators.first(request, tier)
        _refuse_too_few(operator, sources)
        if not held:
            tier = rng.choice(list(dict.fromkeys(elite.tier for elite, _ in request.elites)))
            held = [pair for pair in request.elites if pair[0].tier == tier]
        parent = operators.draw(rng, held)
        drawn = "mutate" if rng.random() >= operators.CROSSOVER_SHARE else "crossover"
        if (operator or drawn) == "mutate":
            return OperatorChoice("mutate", tier, (parent,))
        if sources < operators.FEW_ELITES:
            return operators.first(request, tier)
        partner = operators.partner(rng, request.elites, tier, parent)
        if operator is None and operators.is_weak(partner, parent):
            return OperatorChoice("mutate", tier, (parent,))
        return OperatorChoice("crossover", tier, (parent, partner))

    def visible(self, request: Request, choice: OperatorChoice) -> Request:
        """All of it."""
        return request


def _refuse_too_few(operator: str | None, sources: int) -> None:
    needed = operators.FEW_ELITES if operator == "crossover" else 1
    if sources < needed:
        kernels = "kernel" if needed == 1 else "kernels with different sources"
        raise UsageError(
            f"{operator} needs {needed} correct {kernels}, there {operators.are(sources)}"
        )


METHOD = Full()
