"""An output whose values are right and in the wrong place: transposed, shifted, another layout.

Every rule is tried on a sample of the wrong elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, sampled
from evoengine.evaluate.worker.forensics.found_sources import found_places, found_rows
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.forensics.move_rules import coordinates_of, move_rules
from evoengine.records import DiagnosisKind

LEAST_SHARE = 0.6
SPOILED = 0.05  # of right elements, which a rule for all would have moved
PARTLY = (
    0.97  # a rule that holds only where the output is wrong comes behind one that holds for all
)


def moved_leads(compared: ComparedOutput, hints: Sequence[int]) -> list[Lead]:
    """The rule that explains most wrong elements, if one explains enough."""
    shape = tuple(compared.value.shape)
    places = sampled(compared.wrong)
    if places.numel() < 2 or not shape:
        return []
    value = compared.at(places)
    right_places = sampled(~compared.bad)
    right, right_coordinates = compared.at(right_places), coordinates_of(right_places, shape)
    best: Lead | None = None
    coordinates = coordinates_of(places, shape)
    flat = compared.reference.flatten()
    scale = int(compared.wrong.sum()) / int(compared.bad.sum())
    for rule in move_rules(shape, compared.axes, hints):
        source = rule.move(coordinates)
        known = source >= 0
        moved = source != places
        held = value.matches(flat[source.clamp_min(0)]) & known & moved
        own = float(held.double().mean())
        share = own * scale
        if (
            own > LEAST_SHARE
            and share > (best.share if best else 0.0)
            and _is_no_chance(value, flat[source.clamp_min(0)], own)
        ):
            source = rule.move(right_coordinates)
            kept = right.matches(flat[source.clamp_min(0)]) | (source < 0)
            holds = not right_places.numel() or float(kept.double().mean()) > 1 - SPOILED
            if not holds and (rule.is_of_all or (best is not None and best.share > share - 0.05)):
                continue
            best = Lead(
                DiagnosisKind.moved,
                f"{compared.name} holds right values in the wrong place: {rule.words}"
                f"{'' if holds else ', where it is wrong'}.",
                share if holds else share * PARTLY,
                1.0,
                {"move": rule.words},
                is_of_some=not holds,
            )
            if best.is_whole:
                return [best]
    if best is None:
        best = found_rows(compared) or found_places(compared)
    return [best] if best else []


def _is_no_chance(value: ComparedOutput, source: torch.Tensor, share: float) -> bool:
    """Whether the values match more often than other values of the same output would."""
    mixed = source[torch.arange(source.numel()).roll(max(1, source.numel() // 3 + 1))]
    return share - float(value.matches(mixed).double().mean()) > 0.3
