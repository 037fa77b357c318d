"""What further launches of a candidate say: a race, a state, old values that are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.error_region import error_region
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind


@dataclass(frozen=True, eq=False)
class Relaunch:
    """The outputs of one more replay, whose calls are all on the inputs of the wrong call.

    Each call has buffers of its own, filled with the byte `poison` before.
    """

    calls: tuple[Tensors, ...]
    poison: int


def launch_leads(
    compared: ComparedOutput, relaunches: Sequence[Relaunch], poison: int, hints: Sequence[int]
) -> Iterator[Lead]:
    """What differs between the launches on one input; `poison` is that of the wrong call."""
    name = compared.name
    alike = [one for one in relaunches if one.poison == poison]
    others = [one for one in relaunches if one.poison != poison]
    firsts = [one.calls[0][name] for one in alike if one.calls]
    # the same place in a replay, the same poison: nothing but chance may differ
    chance = torch.zeros_like(compared.wrong)
    for call_number in range(max((len(one.calls) for one in alike), default=0)):
        same = [one.calls[call_number][name] for one in alike if call_number < len(one.calls)]
        for value in same[1:]:
            chance |= _differ(compared, same[0], value)
    if bool(chance.any()):
        region = error_region(chance, compared.axes, hints)
        yield Lead(
            DiagnosisKind.race,
            f"Two launches on the same inputs differ in {int(chance.sum())} elements of {name}"
            f" ({region.words}): a race, as of a missing __syncthreads or a copy that is not"
            " waited for.",
            1.0,
            1.4,
            {"elements": int(chance.sum()), **region.evidence},
        )
        return
    right = [~_wrong(compared, value) for value in firsts]
    for one in alike:
        for number, outputs in enumerate(one.calls[1:], start=2):
            later = _wrong(compared, outputs[name])
            if right and bool(right[0].all()) and bool(later.any()):
                region = error_region(later, compared.axes, hints)
                yield Lead(
                    DiagnosisKind.state,
                    f"The first launch is right, launch {number} on the same inputs is wrong"
                    f" ({region.words}): something is kept between launches and not reset, such as"
                    " a counter or a sum in a global variable.",
                    1.0,
                    1.4,
                    {"launch": number, **region.evidence},
                )
                return
    for one in others:
        if not one.calls or not firsts:
            continue
        moved = _differ(compared, firsts[0], one.calls[0][name])
        moved &= ~_still(one.calls[0][name], one.poison)
        if bool(moved.any()):
            region = error_region(moved, compared.axes, hints)
            yield Lead(
                DiagnosisKind.reads_old_values,
                f"{int(moved.sum())} elements of {name} depend on what the buffers held before the"
                f" launch ({region.words}): it adds to its output, or reads scratch or memory that"
                " was never written.",
                1.0,
                1.35,
                {"elements": int(moved.sum()), **region.evidence},
            )
            return


def _differ(compared: ComparedOutput, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Which elements differ by more than the gate allows."""
    one, other = first.double(), second.double()
    limit = compared.gate.atol + compared.gate.rtol * compared.reference.abs()
    near = ((one - other).abs() <= limit) | (one == other) | (one.isnan() & other.isnan())
    return ~near


def _wrong(compared: ComparedOutput, value: torch.Tensor) -> torch.Tensor:
    limit = compared.gate.atol + compared.gate.rtol * compared.reference.abs()
    wide = value.double()
    return ~(((wide - compared.reference).abs() <= limit) | (wide == compared.reference))


def _still(value: torch.Tensor, poison: int) -> torch.Tensor:
    """Which elements still hold the poison."""
    flat = value.contiguous().view(torch.uint8).view(*value.shape, -1)
    return (flat == poison).all(-1)
