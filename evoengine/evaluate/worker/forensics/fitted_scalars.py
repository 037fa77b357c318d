"""A scalar of the reference that has another value in a kernel, one that nothing names: the value
that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs
from evoengine.evaluate.worker.forensics.time_limit import TimeLimit
from evoengine.evaluate.worker.inputs import scalar_inputs
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

# Factors of a scalar that are tried first; between the neighbours of the best one it is fitted. One
# explains something where the true one is about half as far from 1 or farther.
BELOW = (0.99, 0.998, 0.95, 0.8, 0.4)
ABOVE = (1.01, 1.002, 1.05, 1.25, 2.0, 4.0)
LEAST_NEAR = 0.002  # of the squared error, that the first factor of a side must explain
STEPS = 18  # of the search for the best factor, each of which leaves 0.62 of the range
LEAST_FIRST = 0.2  # of the squared error, that the best of them must explain
LEAST_APART = 1e-3  # from a factor of 1: nearer ones are a question of rounding
LEAST_SHARE = 0.9  # of the wrong elements
GOLDEN = 0.6180339887498949

# The share of the squared error that a change explains; None where it cannot be computed.
Reduction = Callable[[ChangedInputs], float | None]


def fitted_scalars(
    task: Task, case: str, reduction: Reduction, limit: TimeLimit
) -> Iterator[ChangedInputs]:
    """Each scalar with the factor that explains most, if any explains something."""
    for name, spec in task.inputs.items():
        value = scalar_inputs(task, case)[name] if spec.value is not None else None
        if not isinstance(value, float) or not value:
            continue  # whole numbers are off by whole numbers
        factor = _best_factor(name, value, reduction, limit)
        if factor is not None and abs(factor - 1) > LEAST_APART:
            yield _changed(name, value, factor)


def _best_factor(name: str, value: float, reduction: Reduction, limit: TimeLimit) -> float | None:
    known: dict[float, float] = {1.0: 0.0}

    def explained(factor: float) -> float:
        if factor not in known:
            found = None if limit.is_over else reduction(_changed(name, value, factor))
            known[factor] = -1.0 if found is None else found
        return known[factor]

    side = next((side for side in (BELOW, ABOVE) if explained(side[0]) > LEAST_NEAR), None)
    if side is None and max(explained(BELOW[1]), explained(ABOVE[1])) <= 0:
        return None
    factors = sorted((*(side or (*BELOW[:2], *ABOVE[:2])), 1.0))
    best = max(factors, key=explained)
    if explained(best) < LEAST_FIRST:
        return None
    place = factors.index(best)
    low, high = factors[max(0, place - 1)], factors[min(len(factors) - 1, place + 1)]
    for _ in range(STEPS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if explained(left) > explained(right):
            high = right
        else:
            low = left
    return max(known, key=lambda factor: known[factor])


def _changed(name: str, value: float, factor: float) -> ChangedInputs:
    return ChangedInputs(
        DiagnosisKind.changed_scalar,
        f"{name} = {factor * value:.6g} in place of {value:.6g}",
        scalars={name: factor * value},
        weight=0.99,
        # some factor comes near many a mistake in a sum of positive terms
        least=LEAST_SHARE,
        mistake=f"{name}, or a constant that it is multiplied by (a factor such as log2(e)), has"
        f" the wrong value: it is {factor:.4g} times what it should be",
    )
