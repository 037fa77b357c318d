"""Scalars of an update taken for one another: what the first two findings say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from evoengine.evaluate.worker.inputs import Tensors
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import Scalars, diagnosed
from tests.evaluate.worker.forensics.own_reference import first_words


def stepped(given: Tensors, s: Scalars, **other: float) -> Tensors:
    """One step of AdamW; `other` has numbers in place of those of its formula."""
    kept = 1 - s["rate"] * s["decay"]
    of = {
        "b1": s["beta1"],
        "g1": 1 - s["beta1"],
        "b2": s["beta2"],
        "g2": 1 - s["beta2"],
        "kept": kept,
    }
    of |= other
    first = of["b1"] * given["first"] + of["g1"] * given["gradient"]
    second = of["b2"] * given["second"] + of["g2"] * given["gradient"] ** 2
    size = (second / s["correction2"]).sqrt() + s["eps"]
    parameter = given["parameter"] * of["kept"] - s["rate"] * (first / s["correction1"]) / size
    return {"parameter": parameter, "first": first, "second": second}


def coupled(given: Tensors, s: Scalars) -> Tensors:
    """With the decay in the gradient in place of the parameter."""
    gradient = given["gradient"] + s["decay"] * given["parameter"]
    return stepped({**given, "gradient": gradient}, s, kept=1.0)


Mutant = Callable[[Tensors, Scalars], Any]
MISTAKES: dict[str, tuple[Mutant, str]] = {
    "decay of the second": (
        lambda t, s: stepped(t, s, b2=s["beta1"]),
        r"beta1 is used in place of beta2 in `beta2 \* second`",
    ),
    "weight of the gradient": (
        lambda t, s: stepped(t, s, g1=1 - s["beta2"]),
        r"1 - beta2 is used in place of 1 - beta1 in `\(1 - beta1\) \* gradient`",
    ),
    "both of the second": (
        lambda t, s: stepped(t, s, b2=s["beta1"], g2=1 - s["beta1"]),
        "beta1 is used in place of beta2 in second",
    ),
    "decay without rate": (
        lambda t, s: stepped(t, s, kept=1 - s["decay"]),
        r"1 - decay is used in place of 1 - rate \* decay",
    ),
    "coupled": (coupled, r"decay \* parameter is added to gradient, coupled, and not applied"),
    "twice": (
        lambda t, s: stepped({**t, **stepped(t, s)}, s),
        "update is applied twice",
    ),
}


@of_some
@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_named(name: str) -> None:
    mutant, said = MISTAKES[name]
    words = first_words(diagnosed("adamw", "odd", mutant, seconds=30.0))
    assert re.search(said, words, re.IGNORECASE), words
