"""EvoEngineer-Free (arXiv 2510.03760): the prompt shows the task and the best kernel, no more."""

from __future__ import annotations

from dataclasses import replace

from evoengine.generate.operators import OperatorChoice, improve_best, parents_only
from evoengine.protocols import Request


class Free:
    """Each trial improves the best kernel of its tier, and learns of nothing else."""

    def choose(self, request: Request, operator: str | None = None) -> OperatorChoice:
        """A mutation of the best kernel of the tier; a first sample where it has none."""
        return improve_best("free", request, operator)

    def visible(self, request: Request, choice: OperatorChoice) -> Request:
        """The parent alone."""
        return replace(parents_only(request, choice), recent=(), lessons=())


METHOD = Free()
