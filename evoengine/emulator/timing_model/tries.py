"""How often lanes try that change one address by turns, as in a loop around a compare-and-swap.

All lanes that have read the same value try at once; the first one changes it, and the others fail.
Of these, those go on that still want to: all where each adds something, about half where each
raises a maximum. The next try of each takes a round trip to L2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_NEARLY_ALL = 1 - 1e-9


@dataclass(frozen=True)
class Tries:
    """Of some lanes that begin at once."""

    rounds: float  # one after the other, in each of which one of them changes the value
    tries: float  # of all lanes together


def tries(lanes: float, go_on: float) -> Tries:
    """`go_on`: the share of those that failed that try again; of n lanes go_on * (n - 1) are left
    after a round, until there is less than one.
    """
    if lanes <= 1 or go_on <= 0:
        return Tries(min(1.0, lanes), lanes)
    if go_on >= _NEARLY_ALL:
        return Tries(lanes, lanes * (lanes + 1) / 2)
    lost = go_on / (1 - go_on)
    rounds = math.log((lanes + lost) / (1 + lost)) / -math.log(go_on)
    rounds = max(1.0, rounds)
    whole = (lanes + lost) * (1 - go_on**rounds) / (1 - go_on) - lost * rounds
    return Tries(rounds, max(lanes, whole))


def share_that_goes_on(lanes: float, changes: float) -> float:
    """The share with which so many lanes, one after the other, make so many changes."""
    if lanes <= 1 or changes <= 1:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if tries(lanes, middle).rounds < changes:
            low = middle
        else:
            high = middle
    return high if high < _NEARLY_ALL else 1.0
