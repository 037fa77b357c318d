"""Constants of the reference taken for others, results with the wrong sign, functions of one line
exchanged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    UNARY,
    ChangedStep,
    Instead,
    change,
    is_number,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

FACTORS = (0.1, 10.0, 2.0, 0.5, 100.0, 0.01, 50.0, 1000.0, 0.001)
POWERS = {"pow", "rpow", "__rpow__", "__pow__"}
SIGNED = {"sin", "mul", "div", "sub", "matmul", "sum", "log", "tanh", "cumsum"}
MOST_STEPS = 40


def changed_constants(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """The changes of all steps together."""
    for step in steps[:MOST_STEPS]:
        if step.name in SIGNED and step.source.variable:
            yield _negated(step)
    yield from _exchanged_functions(steps)
    for step in steps[:MOST_STEPS]:
        if step.name in BINARY | POWERS:
            for factor in FACTORS:
                yield change(
                    step,
                    f"with the constant times {factor:g} in {step.words}",
                    _scaled(factor),
                    0.98,
                    f"a constant (number, base, eps) of `{step.source.text}` is wrong: {factor:g}"
                    " times what it should be",
                )


def _negated(step: ReferenceStep) -> ChangedStep:
    return change(
        step,
        f"with the result of {step.words} negated",
        lambda f, a, k: -f(*a, **k),
        0.98,
        f"{step.result} has the wrong sign (negated, the other way round)",
    )


def _scaled(factor: float) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = list(args)
        places = [at for at, one in enumerate(given[:2]) if isinstance(one, float)]
        places = places or [at for at, one in enumerate(given[:2]) if is_number(one)]
        if not places:
            raise ValueError("no constant")
        given[places[0]] = given[places[0]] * factor
        return func(*given, **kwargs)

    return instead


def _exchanged_functions(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """cos for sin and sin for cos, where one line uses both."""
    plain = [step for step in steps if step.name in UNARY and hasattr(torch, step.name)]
    for one, other in itertools.combinations(plain[:MOST_STEPS], 2):
        if one.name == other.name or one.source.line != other.source.line:
            continue
        first, second = getattr(torch, one.name), getattr(torch, other.name)
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with {one.name} and {other.name} exchanged in {one.words}",
            {
                one.place: lambda f, a, k, g=second: g(a[0]),
                other.place: lambda f, a, k, g=first: g(a[0]),
            },
            1.0,
            mistake=f"{one.name} and {other.name} are exchanged (swapped)",
        )
