"""Pairs of runners that have run one candidate each: elites, and what may become one.

A race wants every candidate in a process that has run no other. A process takes half a second to
start, so those of the candidates that raced last are kept.
"""

from __future__ import annotations

from collections import OrderedDict

from evoengine.evaluate.device.runner_pair import RunnerPair

# The holders of two tiers, and newcomers that wait for their races; each takes about 1 GB of the
# device.
MOST_KEPT = 9


class OwnRunners:
    """Pairs by the candidate that they have run; the one used longest ago goes first."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[str, RunnerPair] = OrderedDict()

    def take(self, candidate: str) -> RunnerPair | None:
        """The pair of `candidate`, which is the caller's until it is kept again."""
        return self._pairs.pop(candidate, None)

    def keep(self, candidate: str, pair: RunnerPair) -> list[RunnerPair]:
        """Keeps a pair; those that there is no room for, to be killed. That of a candidate without
        a digest is not kept: another one would be taken for it.
        """
        if not candidate:
            return [pair]
        before = self._pairs.pop(candidate, None)
        self._pairs[candidate] = pair
        surplus = [before] if before is not None else []
        while len(self._pairs) > MOST_KEPT:
            surplus.append(self._pairs.popitem(last=False)[1])
        return surplus

    def clear(self) -> list[RunnerPair]:
        """Keeps none; all that were kept, to be killed."""
        pairs = list(self._pairs.values())
        self._pairs.clear()
        return pairs
