"""Neighbours that are all added into one of them, while the others stay zero."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import JsonValue

from evoengine.evaluate.worker.forensics.axis_words import axis_noun
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.records import DiagnosisKind

WIDTHS = (2, 4, 8)
LEAST_SHARE = 0.95
LEAST_ZEROS = 0.3  # of the wrong elements: else nothing is looked at more closely


def gathered_leads(compared: ComparedOutput) -> Iterator[Lead]:
    """Groups of neighbours along the last axis whose sum stands at one place of each group."""
    if not compared.value.dim():
        return
    zeros = int(((compared.value == 0) & compared.bad).count_nonzero())
    if zeros < LEAST_ZEROS * int(compared.bad.count_nonzero()):
        return
    extent = compared.value.shape[-1]
    for width in (one for one in WIDTHS if extent % one == 0):
        groups = compared.reference.unflatten(-1, (extent // width, width))
        sums = groups.sum(-1)
        for holder in range(width):
            gathered = torch.zeros_like(groups)
            gathered[..., holder] = sums
            held = compared.matches(gathered.flatten(-2))
            share = float(held[compared.bad].double().mean())
            if share < LEAST_SHARE or float(held.double().mean()) < LEAST_SHARE:
                continue
            axis = len(compared.axes) - 1
            noun = axis_noun(compared.axes, axis)
            others = "the other stays" if width == 2 else f"the other {width - 1} stay"
            said = (
                f"In each {width} neighbours along {compared.axes[-1]} of {compared.name} the sums"
                f" of all are added into {noun} {holder} of the {width}, and {others} zero: the"
                f" index of what is written (an atomicAdd, a store) lacks the offset of the {noun}."
            )
            evidence: dict[str, JsonValue] = {"width": width, "holder": holder}
            yield Lead(DiagnosisKind.moved, said, share, 1.1, evidence)
            return
