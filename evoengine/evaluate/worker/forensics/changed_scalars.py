"""Scalars and flags of the reference left out, applied twice, inverted, off by one."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs
from evoengine.evaluate.worker.inputs import scalar_inputs
from evoengine.records import DiagnosisKind
from evoengine.task import expression
from evoengine.task.schema import Task


def changed_scalars(task: Task, case: str) -> Iterator[ChangedInputs]:
    """Flags inverted; scalars left out, applied twice, inverted, negated; dimensions off by one."""
    scope = task.scope(case)
    for name, value in scope.items():
        if isinstance(value, bool):
            words = f"{name} = {str(not value).lower()}"
            mistake = (
                f"{name} is ignored: the {name} mask or branch is missing"
                if value
                else f"{name} is applied though it is false"
            )
            yield ChangedInputs(
                DiagnosisKind.changed_flag,
                words,
                scalars={name: not value},
                weight=1.08,
                mistake=mistake,
            )
    for name, spec in task.inputs.items():
        if spec.value is None:
            continue
        value = scalar_inputs(task, case)[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        updates = any(output in task.inputs for output in task.outputs)
        yield from _other_values(name, float(value), updates)
    if any(output in task.inputs for output in task.outputs):
        yield ChangedInputs(
            DiagnosisKind.changed_input,
            "its update in place applied twice, the second time to what the first one left",
            mistake="the update is applied twice",
            is_repeated=True,
        )
    yield from _other_dims(task, case)
    yield from _pairs_left_out(task, case)


def _pairs_left_out(task: Task, case: str) -> Iterator[ChangedInputs]:
    """Two scalars that are left out together, as both corrections of a bias."""
    known = scalar_inputs(task, case)
    names = [name for name, spec in task.inputs.items() if spec.value is not None]
    names = [name for name in names if isinstance(known[name], float)]
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            words = f"{first} and {second} left out (as if 1)"
            yield ChangedInputs(
                DiagnosisKind.changed_scalar,
                words,
                scalars={first: 1.0, second: 1.0},
                mistake=f"{first} and {second} are missing",
            )
            yield ChangedInputs(
                DiagnosisKind.changed_scalar,
                f"{first} and {second} exchanged",
                scalars={first: known[second], second: known[first]},
                weight=1.04,
                mistake=f"{first} and {second} are swapped",
            )


def _other_values(name: str, value: float, updates: bool) -> Iterator[ChangedInputs]:
    again = " (as where a state is updated twice)" if updates else ""
    named: dict[str, tuple[float, str]] = {
        f"{name} left out (as if 1)": (1.0, f"{name} is missing"),
        f"{name} left out (as if 0)": (0.0, f"{name} is missing"),
        f"{name} applied twice ({name} squared)": (
            value * value,
            f"{name} is applied twice{again}",
        ),
        f"-{name}": (-value, f"{name} has the wrong sign"),
        f"2 {name}": (2 * value, f"{name} is applied twice (doubled)"),
        f"{name}/2": (value / 2, f"{name} is halved"),
        f"1 - {name}": (1 - value, f"{name} and 1 - {name} are swapped"),
        f"1 + {name}": (1 + value, ""),
    }
    if value > 0:
        named |= {
            f"sqrt({name})": (value**0.5, f"a square root is missing or too much at {name}"),
            f"1/{name}": (1 / value, f"{name} is applied the wrong way: multiplied, not divided"),
            f"log2(e) {name}": (1.4426950408889634 * value, "the factor log2(e) is too much"),
            f"ln(2) {name}": (0.6931471805599453 * value, "the factor log2(e) is missing"),
        }
    for words, (other, mistake) in named.items():
        plain = words.startswith(f"{name} ")
        if other != value:
            yield ChangedInputs(
                DiagnosisKind.changed_scalar,
                words if plain else f"{words} in place of {name}",
                scalars={name: other},
                weight=1.05 if plain or words.startswith("-") else 0.985,
                mistake=mistake,
            )


def _other_dims(task: Task, case: str) -> Iterator[ChangedInputs]:
    """The scalars and dimensions that follow where one whole number is off by one."""
    scope = task.scope(case)
    for name, value in scope.items():
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        for step in (-1, 1):
            other = {**scope, name: value + step}
            try:
                scalars = {
                    key: expression.parse(spec.value).evaluate(other)
                    for key, spec in task.inputs.items()
                    if spec.value is not None
                }
            except (ArithmeticError, ValueError):
                continue
            sign = "+" if step > 0 else "-"
            yield ChangedInputs(
                DiagnosisKind.changed_scalar,
                f"{name} {sign} 1 in place of {name} in its scalars",
                scalars={**scalars, name: value + step},
                mistake=f"{name} is off by one in what is computed from it",
            )
