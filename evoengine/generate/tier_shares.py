"""Which tier a trial is meant for: drawn by the shares of the tiers."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from evoengine.protocols import Request
from evoengine.task.schema import Task

# Of the trials, for all tiers together that no starting kernel is in: an example of such a kernel
# is missing, and most first samples there fail.
WITHOUT_KERNEL = 1 / 8


def draw_tier(rng: random.Random, request: Request) -> str:
    """A tier of the task, at random by its share."""
    shares = tier_shares(request)
    return rng.choices(list(shares), weights=list(shares.values()))[0]


def tier_shares(request: Request) -> dict[str, float]:
    """Tier -> its share of the trials, which add up to 1; tiers that are not searched are left out.

    The run's own where it has some, else the task's, else: tiers with a starting kernel share
    equally, the others share WITHOUT_KERNEL.
    """
    begun = {seed.outcome.tier for seed in request.seeds}
    return shares_of(request.tiers, request.task, begun)


def shares_of(given: Mapping[str, float], task: Task, begun: Collection[str]) -> dict[str, float]:
    """As tier_shares, of a run of `task` that is `given` these shares or none, and whose starting
    kernels are in the tiers `begun`.
    """
    stated = given or task.budget.tiers
    if stated:
        return dict(stated)
    tiers = list(task.tiers)
    with_kernel = [tier for tier in tiers if tier in begun] or tiers
    without = [tier for tier in tiers if tier not in with_kernel]
    rest = WITHOUT_KERNEL if without else 0.0
    return {tier: (1 - rest) / len(with_kernel) for tier in with_kernel} | {
        tier: rest / len(without) for tier in without
    }
