"""Which of several promising structures gets the next tuning trial: successive halving.

After Li et al., A System for Massively Parallel Hyperparameter Tuning (ASHA), MLSys 2020, with a
source as what is ranked and tuning trials as what it is given: every source of a tier gets FIRST
configurations, the best half of them as many more, the best quarter twice as many more, and so on.
As there, no rung waits until it is full: who is in the best half is decided anew for each trial, by
the best time of each source so far. Unlike there, the best source has no limit.
"""

from __future__ import annotations

from random import Random

from evoengine.generate.tunable_kernels import TunableKernel

FIRST = 4  # configurations of every source, its own first guess included
# Every third tuning trial is the best source's: a model that always brings new structures must not
# keep it waiting. The other two are for the rungs.
TURN_OF_BEST = 3


def next_kernel(kernels: list[TunableKernel], slot: int, rng: Random) -> TunableKernel:
    """The one of `kernels` to be tuned in tuning trial number `slot`; each has one lot for the tier
    that is drawn.
    """
    tier = rng.choice([kernel.precision for kernel in kernels])
    ranked = sorted(
        (kernel for kernel in kernels if kernel.precision == tier), key=lambda kernel: kernel.best
    )
    if slot % TURN_OF_BEST == 0:
        return ranked[0]
    most, count = FIRST, len(ranked)
    while count > 1:
        short = [kernel for kernel in ranked[:count] if kernel.tries < most]
        if short:
            return short[0]
        most, count = 2 * most, (count + 1) // 2
    return ranked[0]
