"""One call of a candidate whose output is wrong, on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evoengine.evaluate.worker.gate import Gate
from evoengine.evaluate.worker.inputs import Tensors

LATER = ("spikes", "shifted", "wide", "outliers", "extreme")


@dataclass(frozen=True, eq=False)
class WrongCall:
    """The inputs of one call, what it wrote, and what it should have written; all on the CPU.

    `poison` is the byte that its outputs were filled with before, those apart that are changed in
    place. `gates` are those of the candidate's tier, by output.
    """

    case: str
    distribution: str
    number: int  # of the input set
    inputs: Tensors
    outputs: Tensors
    reference: Tensors  # float64
    gates: Mapping[str, Gate]
    poison: int
    launch_s: float = 0.0  # what one more launch takes, roughly


def plainness(distribution: str, distributions: Sequence[str]) -> tuple[int, int]:
    """The order in which wrong calls are looked at: ordinary inputs first, because gates are wide
    and ties decide on the others.
    """
    late = LATER.index(distribution) + 1 if distribution in LATER else 0
    return late, list(distributions).index(distribution)
