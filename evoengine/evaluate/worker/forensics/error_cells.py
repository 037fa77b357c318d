"""The error over an output as a grid of characters, for maps."""

from __future__ import annotations

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.records import ErrorMap

MOST_ROWS, MOST_COLUMNS = 64, 64
DETAIL = 64  # rows and columns of the window of single elements: several tiles of any fragment
LEVELS = "0123456789"  # an error of up to 2, 4, 8 ... times the gate
RIGHT, NOT_FINITE, UNWRITTEN = ".", "!", "x"


def error_map(compared: ComparedOutput) -> ErrorMap:
    """The map of one output; leading axes are put one below the other."""
    columns = compared.value.shape[-1] if compared.value.dim() else 1
    if compared.value.dim() < 2:  # one axis is folded into rows
        columns = min(columns, MOST_COLUMNS)
    grid = _grid(_levels(compared).flatten(), columns)
    size = (min(grid.shape[0], MOST_ROWS), min(columns, MOST_COLUMNS))
    whole = torch.nn.functional.adaptive_max_pool2d(grid.view(1, 1, *grid.shape), size)[0, 0]
    found = ErrorMap(
        output=compared.name,
        row_axes=compared.axes[:-1],
        column_axis=compared.axes[-1] if compared.axes else "",
        rows=grid.shape[0],
        columns=columns,
        cells=_signs(whole),
    )
    if grid.shape == whole.shape:
        return found
    row, column = _most_wrong_window(grid)
    window = grid[row : row + DETAIL, column : column + DETAIL]
    return found.model_copy(
        update={"detail": _signs(window), "detail_row": row, "detail_column": column}
    )


def _levels(compared: ComparedOutput) -> torch.Tensor:
    """The place of each element's character in the row of all, in the shape of the output."""
    # in place: to allocate takes longer than to compute, where an output has millions of elements
    limit = compared.reference.abs().mul_(compared.gate.rtol).add_(compared.gate.atol)
    excess = (compared.value - compared.reference).abs_().div_(limit.clamp_min_(1e-300))
    level = excess.nan_to_num_(1e300, 1e300).log2_().clamp_(0, len(LEVELS) - 1).floor_().add_(1)
    level = level.float().masked_fill_(~compared.bad, 0)
    level.masked_fill_(compared.wrong & ~compared.value.isfinite(), len(LEVELS) + 1)
    return level.masked_fill_(compared.unwritten, len(LEVELS) + 2)


def _grid(level: torch.Tensor, columns: int) -> torch.Tensor:
    """The levels in rows of `columns`; what the last row lacks is right."""
    rows = -(-level.numel() // columns)
    lacking = rows * columns - level.numel()
    if lacking:
        level = torch.nn.functional.pad(level, (0, lacking))
    return level.view(rows, columns)


def _most_wrong_window(grid: torch.Tensor) -> tuple[int, int]:
    """Row and column at which the first of the windows with most wrong elements begins; windows
    begin at multiples of DETAIL.
    """
    wrong = (grid > 0).float().view(1, 1, *grid.shape)
    shares = torch.nn.functional.avg_pool2d(
        wrong, DETAIL, ceil_mode=True, count_include_pad=False, divisor_override=1
    )[0, 0]
    row, column = divmod(int(shares.argmax()), shares.shape[1])
    return row * DETAIL, column * DETAIL


def _signs(level: torch.Tensor) -> tuple[str, ...]:
    signs = RIGHT + LEVELS + NOT_FINITE + UNWRITTEN
    return tuple("".join(signs[int(one)] for one in row) for row in level.tolist())
