"""The error over an output as a grid of characters, for maps."""

from __future__ import annotations

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.records import ErrorMap

MOST_ROWS, MOST_COLUMNS = 64, 64
LEVELS = "0123456789"  # an error of up to 2, 4, 8 ... times the gate
RIGHT, NOT_FINITE, UNWRITTEN = ".", "!", "x"


def error_map(compared: ComparedOutput) -> ErrorMap:
    """The map of one output; leading axes are put one below the other."""
    columns = compared.value.shape[-1] if compared.value.dim() else 1
    limit = compared.gate.atol + compared.gate.rtol * compared.reference.abs()
    excess = ((compared.value - compared.reference).abs() / limit.clamp_min(1e-300)).nan_to_num(
        1e300, 1e300
    )
    level = excess.log2().clamp(0, len(LEVELS) - 1).floor() + 1
    level = level.masked_fill(~compared.bad, 0)
    level = level.masked_fill(compared.wrong & ~compared.value.isfinite(), len(LEVELS) + 1)
    level = level.masked_fill(compared.unwritten, len(LEVELS) + 2)
    if compared.value.dim() < 2:  # one axis is folded into rows
        columns = min(columns, MOST_COLUMNS)
    cells = _cells(level.flatten(), columns)
    signs = RIGHT + LEVELS + NOT_FINITE + UNWRITTEN
    return ErrorMap(
        output=compared.name,
        row_axes=compared.axes[:-1],
        column_axis=compared.axes[-1] if compared.axes else "",
        rows=-(-level.numel() // columns),
        columns=columns,
        cells=tuple("".join(signs[int(one)] for one in row) for row in cells.tolist()),
    )


def _cells(level: torch.Tensor, columns: int) -> torch.Tensor:
    """The highest level in each cell, shape (rows of cells, columns of cells)."""
    rows = -(-level.numel() // columns)
    whole = torch.zeros(rows * columns, dtype=level.dtype)
    whole[: level.numel()] = level
    grid = whole.view(1, 1, rows, columns)
    size = (min(rows, MOST_ROWS), min(columns, MOST_COLUMNS))
    return torch.nn.functional.adaptive_max_pool2d(grid, size)[0, 0]
