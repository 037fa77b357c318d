"""Numbers of a step taken for other ones that the task's scalars give: beta1 in place of beta2."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    ChangedStep,
    Instead,
    change,
    is_number,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

MOST_STEPS = 40
MOST_NUMBERS = 250
NAME = r"[A-Za-z_]\w*"
LEAST_APART = 1e-9  # relative: nearer ones are one number


def changed_numbers(
    steps: Sequence[ReferenceStep], scalars: Mapping[str, object]
) -> Iterator[ChangedStep]:
    """Every number that a step combines with a tensor, replaced by each that the scalars give."""
    known = {name: float(value) for name, value in scalars.items() if is_number(value)}
    names = list(_candidates(known))
    operands = [
        (step, place, step.operand(place))
        for step in steps[:MOST_STEPS]
        if step.name in BINARY
        for place in (0, 1)
        if _is_made_of(step.operand(place), known)
    ]
    for step, place, own in operands:
        for words, value in _alike_first(own, names):
            yield change(
                step,
                f"with {words} in place of {own} in {step.words}",
                _replaced(place, value),
                1.02,
                f"{words} is used in place of {own} in {step.result}, the wrong one",
            )
    yield from _in_whole_lines(operands, known)


def _is_made_of(operand: str, known: Mapping[str, float]) -> bool:
    """Whether an operand's source names a scalar, and nothing else."""
    names = re.findall(NAME, operand)
    return bool(names) and all(name in known for name in names)


def _alike_first(own: str, names: Sequence[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """The numbers that may be in place of one, those that are written like it first."""
    form = re.sub(NAME, "x", own.strip("()"))
    seen: list[float] = []
    ordered = sorted(names, key=lambda one: re.sub(NAME, "x", one[0]) != form)
    for words, value in ordered[:MOST_NUMBERS]:
        if words == own.strip("()"):
            continue
        if any(abs(value - other) <= LEAST_APART * abs(value) for other in seen):
            continue
        seen.append(value)
        yield words, value


def _in_whole_lines(
    operands: Sequence[tuple[ReferenceStep, int, str]], known: Mapping[str, float]
) -> Iterator[ChangedStep]:
    """One scalar for another in all that one line makes of it: in `b * v + (1 - b) * g`."""
    lines: dict[tuple[str, int], list[tuple[ReferenceStep, int, str]]] = {}
    for one in operands:
        lines.setdefault((one[0].file, one[0].line), []).append(one)
    for steps in lines.values():
        for name, other in itertools.permutations(known, 2):
            forms = {
                name: known[other],
                f"1 - {name}": 1 - known[other],
                f"1 + {name}": 1 + known[other],
            }
            made = [(step, place, forms.get(own.strip("()"))) for step, place, own in steps]
            instead = {
                step.place: _replaced(place, value)
                for step, place, value in made
                if value is not None
            }
            if len(instead) > 1:
                first = steps[0][0]
                yield ChangedStep(
                    DiagnosisKind.changed_step,
                    f"with {other} in place of {name} in line {first.line} of {first.file}",
                    instead,
                    1.03,
                    mistake=f"{other} is used in place of {name} in {first.source.variable},"
                    " the wrong one",
                )


def _candidates(known: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    yield from known.items()
    for name, value in known.items():
        yield f"1 - {name}", 1 - value
        yield f"1 + {name}", 1 + value
    pairs = list(itertools.permutations(known.items(), 2))
    for (name, value), (other, by) in pairs:
        if name < other:
            yield f"{name} * {other}", value * by
            yield f"1 - {name} * {other}", 1 - value * by
    for (name, value), (other, by) in pairs:
        yield f"{name} - {other}", value - by
        if by:
            yield f"{name} / {other}", value / by


def _replaced(place: int, value: float) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        given = list(args)
        if len(given) < 2 or not is_number(given[place]) or given[place] == value:
            raise ValueError("no other number")
        given[place] = value
        return func(*given, **kwargs)

    return instead
