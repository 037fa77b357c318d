"""What a benchmark shows: rows as a Markdown table, or as JSON, with the machine that they were
measured on.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evoengine import __version__

Cell = str | int | float | bool | None | list[float]
Row = Mapping[str, Cell]


def machine(**more: str) -> dict[str, str]:
    """What figures must be read with: processor, cores, how busy the machine was, versions; `more`
    names the device.
    """
    # before the benchmark began: what else was running
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "evoengine": __version__,
        "date": datetime.now(UTC).date().isoformat(),
        **more,
    }


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, columns in the order of their first appearance; raw samples (lists) are
    for the JSON.
    """
    names = list(
        dict.fromkeys(
            name for row in rows for name, value in row.items() if not isinstance(value, list)
        )
    )
    lines = [names, *([_shown(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    padded = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    return "\n".join(
        [padded[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *padded[1:]]
    )


def publish(where: Mapping[str, str], rows: Sequence[Row], file: Path | None) -> None:
    """Prints machine and table, and writes both to `file` where there is one."""
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    print()
    print(table(rows))
    if file is not None:
        file.write_text(
            json.dumps({"machine": where, "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )


def _shown(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return (
            f"{value:.3f}"
            if abs(value) < 10
            else f"{value:.1f}"
            if abs(value) < 1000
            else f"{value:,.0f}"
        )
    return f"{value:,}" if isinstance(value, int) else str(value)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
