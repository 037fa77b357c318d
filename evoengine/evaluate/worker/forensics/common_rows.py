"""Whole multiples of one row of an input in the error of every row of an output: an index that is
taken where there is none, or that is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import JsonValue

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind

LEAST_SHARE = 0.9  # of the wrong elements
LEAST_COLUMNS, LEAST_ROWS = 4, 2  # of an output whose rows can tell
UNEVEN = 0.02  # of a multiple: what is farther from a whole number is none


def common_row_leads(compared: ComparedOutput, inputs: Tensors) -> Iterator[Lead]:
    """The first or last row of an input that each wrong row of an output has too often or lacks."""
    if compared.value.dim() < 2 or compared.value.shape[-1] < LEAST_COLUMNS:
        return
    wrong_rows = compared.wrong.flatten(0, -2).any(-1)
    if int(wrong_rows.sum()) < LEAST_ROWS:
        return
    columns = compared.value.shape[-1]
    for name, given in inputs.items():
        if given.dim() != 2 or given.shape[-1] != columns or not given.is_floating_point():
            continue
        for which, row in (("first", given[0]), ("last", given[-1])):
            times = _times(compared, row.double())
            if times is None:
                continue
            more = (times[..., None] * row.double()).expand_as(compared.reference)
            explained = compared.matches(compared.reference + more) & compared.wrong
            share = float(explained.sum()) / float(compared.bad.sum())
            if share >= LEAST_SHARE:
                yield _lead(compared, name, which, times, share)


def _times(compared: ComparedOutput, row: torch.Tensor) -> torch.Tensor | None:
    """How often each row of the output has `row` beside what it should be; None where these are no
    whole numbers.
    """
    power = float(row.square().sum())
    if power == 0 or not bool(row.isfinite().all()):
        return None
    error = torch.where(compared.wrong, compared.value - compared.reference, 0.0).nan_to_num(0.0)
    times = error.double() @ row / power
    whole = times.round()
    telling = whole != 0
    if not bool(telling.any()):
        return None
    uneven = (times - whole)[telling].abs() > UNEVEN * whole[telling].abs()
    if bool(uneven.any()):
        return None
    return whole


def _lead(
    compared: ComparedOutput, name: str, which: str, times: torch.Tensor, share: float
) -> Lead:
    index = "index 0" if which == "first" else "the last index"
    most, least = int(times.max()), int(times.min())
    if least >= 0:
        often = "once" if most == 1 else f"up to {most} times"
        said = (
            f"The {which} row of {name} is added to rows of {compared.name} that do not have it,"
            f" {often}: what is beyond the end of a row's indices (the tail, the rest of a warp or"
            f" vector, padding) is not left out and counts as {index}."
        )
    else:
        said = (
            f"The {which} row of {name} is missing from rows of {compared.name}, {index} is left"
            " out as if it were padding."
        )
    evidence: dict[str, JsonValue] = {"input": name, "row": which, "most": most, "least": least}
    return Lead(DiagnosisKind.input_multiple, said, share, 1.05, evidence)
