"""The table of packaged tasks."""

from __future__ import annotations

from collections.abc import Iterable

from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import TaskRow


def tasks_table(rows: Iterable[TaskRow]) -> FittedTable:
    """The packaged tasks."""
    table = FittedTable(
        [
            Column("task"),
            Column("target"),
            number_column("trials"),
            Column("tiers"),
            text_column("dimensions", least=20),
            text_column("cases", least=20),
            text_column("summary", least=32),
        ]
    )
    for row in rows:
        table.add(
            row.name,
            row.target or "-",
            str(row.trials),
            ", ".join(row.tiers),
            ", ".join(f"{name} ({kind})" for name, kind in row.dims.items()),
            ", ".join(row.cases),
            row.summary or row.problem,
        )
    return table
