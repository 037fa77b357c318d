"""EvoEngineer-Insight (arXiv 2510.03760): the best kernel, and what earlier trials have taught."""

from __future__ import annotations

from dataclasses import replace

from evoengine.generate.operators import OperatorChoice, improve_best, parents_only
from evoengine.protocols import Request


class Insight:
    """Each trial improves the best kernel of its tier, and sees what became of the last trials."""

    def choose(self, request: Request, operator: str | None = None) -> OperatorChoice:
        """As in Free."""
        return improve_best("insight", request, operator)

    def visible(self, request: Request, choice: OperatorChoice) -> Request:
        """The parent, and the last trials that hold no place: those are history, not insight."""
        held = {evaluated.outcome.trial for _, evaluated in request.elites}
        recent = tuple(item for item in request.recent if item.outcome.trial not in held)
        return replace(parents_only(request, choice), recent=recent)


METHOD = Insight()
