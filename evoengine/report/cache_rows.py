"""The contents of the cache, by kind."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import Frozen
from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column


class KindRow(Frozen):
    """One kind of cached files, after pruning if that was requested."""

    kind: str
    what: str
    files: int
    bytes: int
    freed_files: int = 0
    freed_bytes: int = 0
    link: str = ""  # target of its folder if that is a symbolic link, which is not followed


class CacheRows(Frozen):
    """The whole cache."""

    folder: str
    kinds: tuple[KindRow, ...]
    pruned: bool = False
    in_use: bool = False  # pruning kept what a live run may need


def cache_report(rows: CacheRows) -> RenderableType:
    """The folder, a line for each kind and the total; after pruning also what was freed."""
    freed = [number_column("freed files"), number_column("freed")] if rows.pruned else []
    table = FittedTable(
        [Column("kind"), text_column("what"), number_column("files"), number_column("size"), *freed]
    )
    sums = [0, 0, 0, 0]
    for row in rows.kinds:
        what = f"{row.what}: a link to {row.link}, not followed" if row.link else row.what
        figures_of = [row.files, row.bytes, row.freed_files, row.freed_bytes]
        table.add(row.kind, what, *_cells(figures_of, rows.pruned))
        sums = [total + value for total, value in zip(sums, figures_of, strict=True)]
    table.add("total", "", *_cells(sums, rows.pruned), style="bold")
    return Group(Text(f"cache {rows.folder}", style="bold"), table)


def _cells(counts: list[int], pruned: bool) -> list[str]:
    """The number and size of the files; after pruning also of those that were freed."""
    cells = [str(counts[0]), format.size(counts[1]), str(counts[2]), format.size(counts[3])]
    return cells if pruned else cells[:2]
