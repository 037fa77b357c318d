"""Right values in the wrong place whose rule is not known: their places are looked up."""

from __future__ import annotations

import math

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.records import DiagnosisKind

LEAST_SHARE = 0.6
MOST_ROWS = 4096  # among which the source of a row is looked for
SAMPLED_ROWS = 128
MOST_PLACED = 1 << 22  # elements of an output whose tiles are looked at
TILES = ((8, 8), (16, 8), (8, 16), (16, 16), (8, 32), (4, 32), (8, 64), (16, 32))


def found_rows(compared: ComparedOutput) -> Lead | None:
    """Rows that hold another row of the reference, wherever it is."""
    if compared.value.dim() < 2 or compared.value.shape[-1] < 8:
        return None
    columns = compared.value.shape[-1]
    value, reference = (
        tensor.reshape(-1, columns) for tensor in (compared.value, compared.reference)
    )
    if value.shape[0] > MOST_ROWS or value.shape[0] < 3:
        return None
    wrong = compared.wrong.reshape(-1, columns).double().mean(1)
    rows = (wrong > 0.3).nonzero().flatten()
    if rows.numel() < 2:
        return None
    rows = rows[torch.linspace(0, rows.numel() - 1, min(SAMPLED_ROWS, rows.numel())).long()]
    chosen = value[rows].nan_to_num(0, 0, 0)
    nearest = torch.cdist(chosen, reference.nan_to_num(0, 0, 0)).argmin(1)
    held = _row_matches(compared, rows, reference[nearest]) & (nearest != rows)
    share = float(held.double().mean())
    if share < LEAST_SHARE:
        return None
    pairs = [(int(row), int(source)) for row, source in zip(rows[held], nearest[held], strict=True)]
    differences = {source - row for row, source in pairs}
    if len(differences) == 1:
        step = differences.pop()
        words = f"each row holds the one {abs(step)} {'ahead' if step > 0 else 'behind'}"
    elif len({source for _, source in pairs}) == 1:
        words = f"these rows all hold row {pairs[0][1]}"
    else:
        shown = ", ".join(f"row {row} holds row {source}" for row, source in pairs[:3])
        words = f"rows are mixed up ({shown})"
    share *= int(compared.wrong.sum()) / int(compared.bad.sum())
    return Lead(
        DiagnosisKind.moved,
        f"{compared.name} holds right values in the wrong place: {words}.",
        share,
        0.95,
        {"rows": [list(pair) for pair in pairs[:8]]},
    )


def _row_matches(compared: ComparedOutput, rows: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    columns = other.shape[-1]
    places = (rows.view(-1, 1) * columns + torch.arange(columns)).flatten()
    matched = compared.at(places).matches(other.flatten()).view(-1, columns)
    return matched.double().mean(1) > 0.9


def found_places(compared: ComparedOutput) -> Lead | None:
    """The same mixing of places in every tile: a fragment's layout."""
    if compared.value.dim() < 2 or compared.value.numel() > MOST_PLACED:
        return None
    rows, columns = compared.value.shape[-2:]
    for height, width in TILES:
        down, across = rows // height, columns // width
        if down * across < 4:
            continue

        def tiles(
            tensor: torch.Tensor, sizes: tuple[int, int, int, int] = (down, height, across, width)
        ) -> torch.Tensor:
            cut = tensor[..., : sizes[0] * sizes[1], : sizes[2] * sizes[3]]
            cut = cut.reshape(-1, *sizes).transpose(2, 3)
            return cut.reshape(-1, sizes[1] * sizes[3])[:64].T  # places by tiles

        value, reference = tiles(compared.value).nan_to_num(0, 0, 0), tiles(compared.reference)
        wrong = tiles(compared.wrong).double().mean(1) > 0.3
        if int(wrong.sum()) < 2 or not bool(reference.isfinite().all()):
            continue
        nearest = torch.cdist(value[wrong], reference).argmin(1)
        own = wrong.nonzero().flatten()
        limit = 3 * compared.gate.atol + 3 * compared.gate.rtol * reference[nearest].abs()
        near = ((value[wrong] - reference[nearest]).abs() <= limit).double().mean(1) > 0.9
        held = near & (nearest != own)
        share = float(held.double().mean())
        if share < LEAST_SHARE:
            continue
        pairs = [
            (divmod(int(place), width), divmod(int(source), width))
            for place, source in zip(own[held], nearest[held], strict=True)
        ]
        shown = ", ".join(f"{list(place)} holds {list(source)}" for place, source in pairs[:3])
        covered = math.prod((down, height, across, width)) / (rows * columns)
        return Lead(
            DiagnosisKind.fragment_layout,
            f"In every {height}x{width} tile of {compared.name} the same places are mixed up,"
            f" rows and columns in the order of another fragment layout: {shown}.",
            share * covered,
            1.0,
            {"tile": [height, width], "places": [[list(a), list(b)] for a, b in pairs[:8]]},
        )
    return None
