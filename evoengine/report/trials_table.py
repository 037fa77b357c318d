"""The table of trials."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from evoengine.records import Status
from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import TrialRow
from evoengine.report.search_remark import search_remark
from evoengine.report.status_style import status_style


def trials_table(rows: Iterable[TrialRow]) -> FittedTable:
    """One line for each trial."""
    rows = list(rows)
    modelled = any(row.modelled for row in rows)
    table = FittedTable(
        [
            number_column("trial"),
            Column("operator", optional=True),
            text_column("name"),
            text_column("tunables"),
            Column("status"),
            Column("tier", optional=True),
            number_column("vs first seed" if modelled else "speed-up"),
            number_column("modelled us" if modelled else "us", optional=True),
            number_column("place"),
            text_column("reason", least=32),
        ],
        "trials",
    )
    for row in rows:
        table.add(
            str(row.trial),
            row.operator,
            row.name,
            format.tunables(row.changed),
            Text(row.status.value, style=status_style(row.status)),
            row.tier,
            format.vs_first(row.vs_first) if modelled else _speedup(row),
            format.rough(row.latency_us) if row.is_coarse else format.micros(row.latency_us),
            "" if row.place is None else str(row.place),
            search_remark(row) if row.status is Status.correct else row.reason,
        )
    return table


def _speedup(row: TrialRow) -> str:
    """`1.43x`; `~0.52x` where timing stopped early."""
    if row.speedup is None:
        return "-"
    return f"{format.rough(row.speedup)}x" if row.is_coarse else f"{row.speedup.value:.2f}x"
