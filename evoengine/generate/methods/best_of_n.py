"""The control of all other methods: independent samples, of which the best ones are kept.

What evolution adds is what another method finds beyond this one with as many trials.
"""

from __future__ import annotations

from evoengine.errors import UsageError
from evoengine.generate import operators
from evoengine.generate.method import as_at_start
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.tier_shares import draw_tier
from evoengine.protocols import Request


class BestOfN:
    """Each trial is a first sample that sees the task and the starting kernels."""

    def choose(self, request: Request, operator: str | None = None) -> OperatorChoice:
        """Always a first sample."""
        if operator not in (None, "first"):
            raise UsageError(f"the method best_of_n has no {operator}; it has first")
        tier = draw_tier(operators.rng_of(request), request)
        return operators.first(request, tier, always=True)

    def visible(self, request: Request, choice: OperatorChoice) -> Request:
        """Nothing that the run has found."""
        return as_at_start(request)


METHOD = BestOfN()
