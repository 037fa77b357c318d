"""The table of an audit."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import AuditReport
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column

NOTE = (
    "error and allowed: of the set on which the bound refuses, or comes closest to that. Each case"
    " that is scored must refuse each stand-in that applies to it."
)


def audit_table(report: AuditReport) -> RenderableType:
    """Every bound with what it was tried with, and the findings below."""
    table = FittedTable(
        [
            Column("tier"),
            Column("case"),
            Column("output"),
            text_column("tried outputs", least=24),
            Column("bound"),
            Column("refused"),
            Column("distribution"),
            number_column("error"),
            number_column("allowed"),
        ]
    )
    for row in report.rows:
        table.add(
            row.tier,
            row.case,
            row.output,
            row.stand_in,
            row.bound,
            "yes" if row.refused else "NO",
            row.distribution,
            f"{row.error:.3g}",
            f"{row.limit:.3g}",
        )
    findings = [Text(f"let through: {line}", style="red") for line in report.findings]
    verdict = f"{len(report.rows)} tried, {len(findings)} let through"
    return Group(table, Text(NOTE, style="dim"), *findings, Text(verdict, style="bold"))
