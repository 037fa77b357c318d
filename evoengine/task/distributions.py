"""The distributions of random inputs: each name with its meaning, as a generator reads it.

evaluate/worker/set_distributions.py and drawn_values.py draw them; nothing here needs torch.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from evoengine.errors import hint

# N(0, 1) times this at most: sums of squares then leave the range of a half, and exponentials that
# of single precision
LARGEST_FACTOR = 2.0**6

# of a whole input set; a task's `distributions` names some
DISTRIBUTIONS: dict[str, str] = {
    "normal": "N(0, 1)",
    "outliers": (
        "N(0, 1), one value in a thousand 20 times larger: intermediate results get large"
    ),
    "wide": (
        "slices that differ in scale by powers of two, and one that is all zero: no division by a"
        " zero scale, sum or norm"
    ),
    "spikes": (
        "N(0, 1), one row of each matrix, at random, 32 times larger: what holds for the first rows"
        " need not hold for the others"
    ),
    "shifted": "N(8, 1): a mean far larger than the spread, where E[x^2] - mean^2 cancels",
    "extreme": (
        f"N(0, 1) times a power of two, up to {LARGEST_FACTOR:.0f}, as large as the correct outputs"
        " stay finite: keep sums and squares in a type that holds them"
    ),
}
# what they ask of a kernel with exponentials besides
EXPONENTIAL_ADVICE = {
    "outliers": "; subtract maxima before you exponentiate",
    "extreme": "; subtract maxima before you exponentiate",
}
DEFAULT_DISTRIBUTIONS = ("normal", "outliers", "wide", "extreme")

# of one input, whatever the distribution of its set; see task/draw.py
STRUCTURES: dict[str, str] = {
    "uniform": "each value from low, up to and without high, equally likely",
    "probabilities": "positive, and the last dimension sums to 1",
    "offsets": "sorted along the last dimension, the first 0, the last high; some repeat",
    "permutation": "along the last dimension, each number from 0 on once, in a random order",
    "mask": "1 or true with the probability density, else 0 or false",
    "one_hot": "along the last dimension, a single 1 at a random place",
    "triangular": "the lower triangle of each matrix, the rest zero",
}


def known_distribution(name: str) -> str:
    """`name`; raises ValueError where it is not the name of a distribution."""
    if name not in DISTRIBUTIONS:
        *others, last = map(repr, DISTRIBUTIONS)
        raise ValueError(f"expected {', '.join(others)} or {last}")
    return name


def known_draw(name: str) -> str:
    """`name`; raises ValueError where no single input can be drawn from it."""
    known = [item for item in (*DISTRIBUTIONS, *STRUCTURES) if item != "extreme"]
    if name == "extreme":
        raise ValueError(
            "extreme is a distribution of a whole input set, because its factor depends on the"
            " outputs; use scale here"
        )
    if name not in known:
        raise ValueError(f"no distribution {name!r}{hint(name, known)}")
    return name


Distribution = Annotated[str, AfterValidator(known_distribution)]
DrawName = Annotated[str, AfterValidator(known_draw)]
