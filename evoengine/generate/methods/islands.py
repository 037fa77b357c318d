"""Islands: lineages of kernels that develop apart, with rare migration between them.

An island is the descendants of one kernel in one tier (`population/lineages.py`): it keeps its own
elites, which need no place in the population, and its prompts show nothing of other islands. So a
design that is slower at first is not replaced before it was worked on. After PATIENCE trials of an
island without gain, a trial crosses one of its elites with one of another island.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from evoengine.errors import UsageError
from evoengine.generate import operators
from evoengine.generate.method import as_at_start
from evoengine.generate.operators import Held, OperatorChoice
from evoengine.generate.tier_shares import draw_tier
from evoengine.protocols import Evaluated, Island, Request

PATIENCE = 4  # trials of an island without gain, before a parent comes from another one


class Islands:
    """Parents are of one island, but for a migrant."""

    def choose(self, request: Request, operator: str | None = None) -> OperatorChoice:
        """A first sample while islands are founded, or where the tier has none; then crossover or
        mutation on one of them.
        """
        rng = operators.rng_of(request)
        tier = draw_tier(rng, request)
        there = [island for island in request.islands if island.tier == tier]
        if operator == "first" or (
            operator is None and (operators.is_opening(request) or not there)
        ):
            return operators.first(request, tier)
        if not request.islands:
            raise UsageError(f"{operator} needs 1 correct kernel, there are none")
        island = rng.choice(there or request.islands)
        return _on(island, request, rng, operator)

    def visible(self, request: Request, choice: OperatorChoice) -> Request:
        """The island of the first parent and a migrant; for a first sample, the starting kernels.

        A migrant comes after the island's elites.
        """
        if not choice.parents:
            return as_at_start(request)
        home = _home(request, choice)
        known = {evaluated.outcome.trial for _, evaluated in home.elites}
        migrants = [
            pair
            for island in request.islands
            for pair in island.elites
            if pair[1].outcome.trial in choice.trials and pair[1].outcome.trial not in known
        ]
        return replace(request, elites=(*home.elites, *migrants), recent=home.recent, islands=())


def _on(
    island: Island, request: Request, rng: random.Random, operator: str | None
) -> OperatorChoice:
    """The choice on one island."""
    parent = operators.draw(rng, island.elites)
    own = operators.other_sources(island.elites, parent)
    others = operators.other_sources(_others(island, request), parent)
    migrates = bool(others) and island.trials_without_gain >= PATIENCE
    crosses = rng.random() < operators.CROSSOVER_SHARE and bool(own)
    if operator == "mutate" or (operator is None and not (migrates or crosses)):
        return OperatorChoice("mutate", island.tier, (parent,))
    partners = others if migrates or not own else own
    if not partners:
        raise UsageError("crossover needs 2 correct kernels with different sources, there is 1")
    return OperatorChoice("crossover", island.tier, (parent, operators.draw(rng, partners)))


def _others(island: Island, request: Request) -> Sequence[Held]:
    """The elites of the other islands of the tier; of all, where it has no other."""
    others = [other for other in request.islands if other is not island]
    near = [other for other in others if other.tier == island.tier]
    return [pair for other in near or others for pair in other.elites]


def _home(request: Request, choice: OperatorChoice) -> Island:
    """The island of the first parent."""
    parent: Evaluated = choice.parents[0]
    return next(
        island
        for island in request.islands
        if island.tier == choice.tier and any(pair[1] == parent for pair in island.elites)
    )


METHOD = Islands()
