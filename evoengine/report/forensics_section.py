"""What forensics found out about a wrong result, for people."""

from __future__ import annotations

import json

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evoengine.records import Diagnosis, DiagnosisKind, Forensics
from evoengine.report import format
from evoengine.report.error_map import terminal_map

SAID = {"change", "move"}  # evidence that is in the sentence
LEGEND = (
    "worst error in each cell: . within the gate, 0 to 9 up to 2 to 1024 times it, ! not finite,"
    " x never written"
)


def forensics_section(found: Forensics) -> RenderableType:
    """Each diagnosis with its evidence, most telling first, and the map of the error. A fault has
    no outputs that were compared, and so no shares.
    """
    has_shares = any(item.kind is not DiagnosisKind.changed_source for item in found.diagnoses)
    parts: list[RenderableType] = [Text(_head(found, has_shares), style="bold")]
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for item in found.diagnoses:
        is_fault = item.kind is DiagnosisKind.fault
        share = "" if is_fault or not has_shares else f"{item.share:.0%}"
        table.add_row(share, item.kind.value, Text(format.printable(_words(item))))
    if found.diagnoses:
        parts.append(table)
    else:
        parts.append(Text("nothing was found that explains it"))
    if found.problem:
        parts.append(Text(format.printable(found.problem)))
    if found.error_map is not None:
        parts += [Text(LEGEND, style="dim"), terminal_map(found.error_map)]
    return Group(*parts)


def _head(found: Forensics, has_shares: bool) -> str:
    where = f": {found.output}, {found.distribution} inputs" if found.output else ""
    of_what = " (share of the wrong elements)" if has_shares else ""
    return format.printable(f"what is wrong in {found.case}{where}{of_what}")


def _words(item: Diagnosis) -> str:
    evidence = ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}"
        for name, value in item.evidence.items()
        if name not in SAID
    )
    return f"{item.sentence} [{evidence}]" if evidence else item.sentence


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value).strip('"')
