"""What further launches of a candidate say: a race, a state, old values that are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from pydantic import JsonValue

from evoengine.evaluate.worker.forensics.axis_words import listed
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, poisoned
from evoengine.evaluate.worker.forensics.error_region import error_region
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

_RACE = (
    "Two launches on the same inputs differ in {count} elements of {name} ({where}): a race,"
    " as of a missing __syncthreads or a cp.async that is not waited for, or a read of shared"
    " memory to which nothing was written before."
)
_STATE = (
    "The first launch is right, launch {launch} on the same inputs is wrong ({where}): something is"
    " kept between launches and not reset, such as a counter or a sum in a global variable."
)
_OLD_VALUES = "{count} elements of {name} depend on what the buffers held before the launch"
_OF_ANY = (
    f"{_OLD_VALUES} ({{where}}): it adds to its output, or reads scratch or memory that was never"
    " written."
)
_OF_OUTPUT = (
    f"{_OLD_VALUES} ({{where}}), and on no scratch: it adds to its output, or reads memory that was"
    " never written."
)
_OF_SCRATCH = (
    f"{_OLD_VALUES} ({{where}}), namely scratch {{scratch}}: elements of it are read that no launch"
    " has written. Its first value (init) is missing, the launch before writes too few of them"
    " (such as none for an empty part), or they must be left out where they are read."
)


@dataclass(frozen=True, eq=False)
class Relaunch:
    """The outputs of one more replay, whose calls are all on the inputs of the wrong call.

    Each call has buffers of its own, filled with the byte `poison` before; where `scratch` names
    one, that one alone, and all others with the byte of the wrong call.
    """

    calls: tuple[Tensors, ...]
    poison: int
    scratch: str = ""


@dataclass(frozen=True, eq=False)
class _Fact:
    """What would be so if `where` named any elements."""

    kind: DiagnosisKind
    where: torch.Tensor
    sentence: str
    weight: float
    evidence: dict[str, JsonValue] = field(default_factory=dict)


def written(name: str, relaunches: Sequence[Relaunch]) -> torch.Tensor | None:
    """Which elements of an output some launch wrote: where it was filled with different bytes
    before, not all launches left them; None where all had the same poison.
    """
    launches = [(one.calls[0][name], one.poison) for one in _of_all(relaunches)]
    if len({poison for _, poison in launches}) < 2:
        return None
    found = torch.zeros_like(launches[0][0], dtype=torch.bool)
    for value, poison in launches:
        found |= ~poisoned(value, poison)
    return found


def _of_all(relaunches: Sequence[Relaunch]) -> list[Relaunch]:
    """The replays whose buffers all had the same byte before."""
    return [one for one in relaunches if one.calls and not one.scratch]


def depends_on_poison(relaunches: Sequence[Relaunch]) -> bool:
    """Whether elements that were written differ between launches whose buffers were filled with
    different bytes before.
    """
    first = {one.poison: one.calls[0] for one in reversed(_of_all(relaunches))}
    for (_, outputs), (poison, others) in pairwise(first.items()):
        for name, other in others.items():
            one, two = outputs[name].double(), other.double()
            alike = (one == two) | (one.isnan() & two.isnan()) | poisoned(other, poison)
            if not bool(alike.all()):
                return True
    return False


def launch_leads(
    compared: ComparedOutput, relaunches: Sequence[Relaunch], poison: int, hints: Sequence[int]
) -> Iterator[Lead]:
    """The first difference between launches on one input; `poison` is that of the wrong call."""
    alike = [one for one in _of_all(relaunches) if one.poison == poison]
    others = [one for one in _of_all(relaunches) if one.poison != poison]
    by_scratch = [one for one in relaunches if one.calls and one.scratch]
    for fact in _facts(compared, alike, others, by_scratch):
        if bool(fact.where.any()):
            yield _lead(fact, compared, hints)
            return


def _facts(
    compared: ComparedOutput,
    alike: Sequence[Relaunch],
    others: Sequence[Relaunch],
    by_scratch: Sequence[Relaunch],
) -> Iterator[_Fact]:
    """A race before what only replays without one can show."""
    if not alike:
        return
    yield _race(compared, alike)
    first = alike[0].calls[0][compared.name]
    if not bool(_apart(compared, first, compared.reference).any()):
        yield from _states(compared, alike)
    for other in others:
        value = other.calls[0][compared.name]
        moved = _apart(compared, first, value) & ~poisoned(value, other.poison)
        read = [
            one.scratch
            for one in by_scratch
            if bool((_apart(compared, first, one.calls[0][compared.name]) & moved).any())
        ]
        sentence = _OF_SCRATCH if read else _OF_OUTPUT if by_scratch else _OF_ANY
        evidence: dict[str, JsonValue] = {"scratch": listed(read)} if read else {}
        yield _Fact(DiagnosisKind.reads_old_values, moved, sentence, 1.35, evidence)


def _race(compared: ComparedOutput, alike: Sequence[Relaunch]) -> _Fact:
    """The same call of a replay, the same poison: nothing but chance may differ."""
    chance = torch.zeros_like(compared.wrong)
    for number in range(max(len(one.calls) for one in alike)):
        calls = [one.calls[number] for one in alike if number < len(one.calls)]
        for outputs in calls[1:]:
            chance |= _apart(compared, calls[0][compared.name], outputs[compared.name])
    return _Fact(DiagnosisKind.race, chance, _RACE, 1.4)


def _states(compared: ComparedOutput, alike: Sequence[Relaunch]) -> Iterator[_Fact]:
    for one in alike:
        for number, outputs in enumerate(one.calls[1:], start=2):
            later = _apart(compared, outputs[compared.name], compared.reference)
            yield _Fact(DiagnosisKind.state, later, _STATE, 1.4, {"launch": number})


def _lead(fact: _Fact, compared: ComparedOutput, hints: Sequence[int]) -> Lead:
    region = error_region(fact.where, compared.axes, hints)
    count = int(fact.where.sum())
    sentence = fact.sentence.format(
        count=count, name=compared.name, where=region.words, **fact.evidence
    )
    evidence = {"elements": count, **fact.evidence, **region.evidence}
    return Lead(fact.kind, sentence, 1.0, fact.weight, evidence)


def _apart(compared: ComparedOutput, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Which elements differ by more than the gate allows; NaN equals NaN."""
    one, other = first.double(), second.double()
    limit = compared.gate.atol + compared.gate.rtol * compared.reference.abs()
    near = ((one - other).abs() <= limit) | (one == other) | (one.isnan() & other.isnan())
    return ~near
