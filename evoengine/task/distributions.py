"""The distributions of random inputs: each name with its meaning, as a generator reads it.

evaluate/worker/inputs.py draws them; nothing here needs torch.
"""

from __future__ import annotations

DISTRIBUTIONS: dict[str, str] = {
    "normal": "N(0, 1)",
    "outliers": (
        "N(0, 1), one value in a thousand 20 times larger: intermediate results get large, so"
        " subtract maxima before you exponentiate"
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
}


def known_distribution(name: str) -> str:
    """`name`; raises ValueError where it is not the name of a distribution."""
    if name not in DISTRIBUTIONS:
        *others, last = map(repr, DISTRIBUTIONS)
        raise ValueError(f"expected {', '.join(others)} or {last}")
    return name
