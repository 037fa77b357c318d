"""Tables of the resources of compiled kernels beside the limits of the task's target."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import ResourceRow

_UNITS = "shared memory in KiB, local memory and spills in bytes"
_TAKES = (
    Column("arch", optional=True),
    number_column("registers"),
    number_column("static"),
    number_column("dynamic"),
    number_column("shared"),
    number_column("local", optional=True),
    number_column("spills"),
    text_column("formats", optional=True),
    Column("target"),
)


def resources_table(rows: Iterable[ResourceRow]) -> FittedTable:
    """The registers, shared memory, local memory and spills of each compiled kernel."""
    table = FittedTable([text_column("kernel"), *_TAKES], f"resources ({_UNITS})")
    for row in rows:
        table.add(row.kernel, *_cells(row))
    return table


def machine_code_lines(rows: Iterable[ResourceRow]) -> list[Text]:
    """What each kernel's machine code says without running it, one line for each fact."""
    lines = [
        Text(format.printable(line))
        for row in rows
        if row.facts
        for line in (f"{row.kernel} ({row.arch})", *(f"  {fact}" for fact in row.facts))
    ]
    return [Text("machine code (counted, not measured)", style="bold"), *lines] if lines else []


def over_target(rows: Iterable[ResourceRow], exceeds: Iterable[str]) -> list[Text]:
    """The target's limits that are exceeded, if no row of the table shows it."""
    if any(row.over for row in rows):
        return []
    return [
        Text(format.printable(f"exceeds the target: {item}"), style="yellow") for item in exceeds
    ]


def _cells(row: ResourceRow) -> list[str | Text]:
    return [
        row.arch,
        _used_of_limit(
            str(row.registers),
            row.target_registers and str(row.target_registers),
            "registers" in row.over,
        ),
        format.kib(row.static_shared_bytes),
        format.kib(row.dynamic_shared_bytes),
        _used_of_limit(
            format.kib(row.shared_bytes),
            row.target_shared_bytes and format.kib(row.target_shared_bytes),
            "shared" in row.over,
        ),
        str(row.local_bytes),
        str(row.spill_store_bytes + row.spill_load_bytes),
        " ".join(row.formats),
        _target(row),
    ]


def _used_of_limit(taken: str, limit: str | int | None, over: bool) -> Text:
    """`40/72`, or `40` if the target sets no limit."""
    return Text(f"{taken}/{limit}" if limit else taken, style="yellow" if over else "")


def _target(row: ResourceRow) -> Text:
    if row.target_registers is None and row.target_shared_bytes is None:
        return Text("-", style="dim")
    return Text("over", style="yellow") if row.over else Text("within", style="green")
