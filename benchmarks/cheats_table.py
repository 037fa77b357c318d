"""What the corpus of cheats got from version 0.1.0, and what it gets now.

    python -m benchmarks.cheats_table OLD.json NEW.json     prints both as a table in Markdown
    python -m benchmarks.cheats_table OLD.json --manifest   writes the old figures into the manifest

OLD.json holds rows of a walk through version 0.1.0: file, task, family, status, score (the speed-up
against the fastest baseline), twin_score, says (what a verdict must not say), reason. NEW.json is
what `python -m benchmarks.cheats --json NEW.json` wrote.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.corpora import CHEATS, MANIFEST, NOISE
from benchmarks.table import Row
from evoengine import atomic_files

ENDS = ("ends the run", "blocks the run")  # in place of a status
NOT_RUN = ("cannot be run", "not reached")
REASON_CHARACTERS = 80


def rows_of(path: Path) -> dict[str, Row]:
    """The rows of a walk over the corpus of cheats, by file."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {row["file"]: row for row in rows if row.get("corpus", "cheats") == "cheats"}


def seen(row: Row) -> tuple[str, str]:
    """The field of the manifest that says what version 0.1.0 did with a cheat, and its text."""
    status, reason = str(row["status"]), " ".join(str(row["reason"]).split())[:REASON_CHARACTERS]
    if row.get("says"):
        return "seen_on_0_1_0", f"its verdict says {row['says']!r}"
    if status in ENDS:
        return "seen_on_0_1_0", f"{status}: {reason}"
    if status in NOT_RUN:
        return "why_not", f"{status} there: {reason}"
    if status != "correct":
        return "why_not", f"refused there: {status}"
    figures = _figures(row["score"], row["twin_score"])
    gains = bool(row["score"]) and row["score"] > NOISE * (row["twin_score"] or 0.0)
    return ("seen_on_0_1_0", figures) if gains else ("why_not", f"no gain there: {figures}")


def with_seen(manifest: str, rows: Mapping[str, Row]) -> str:
    """The text of the manifest with what `rows` say in place of what it said before."""
    parts = re.split(r"^(?=\S+\.cu:$)", manifest, flags=re.MULTILINE)
    return "".join(_entry(part, rows) for part in parts)


def _entry(text: str, rows: Mapping[str, Row]) -> str:
    row = rows.get(text.partition(":")[0])
    if row is None:
        return text
    field, words = seen(row)
    kept = re.sub(r"^  (seen_on_0_1_0|why_not):.*\n", "", text, flags=re.MULTILINE)
    # a JSON string is a YAML string as well
    return f"{kept.rstrip()}\n  {field}: {json.dumps(words)}\n"


def markdown(old: Mapping[str, Row], new: Mapping[str, Row]) -> str:
    """One line for each cheat of `new`: before, now, and its honest twin."""
    lines = ["| cheat | family | 0.1.0 | now |", "|---|---|---|---|"]
    for name, row in new.items():
        before = _before(old[name]) if name in old else "not run"
        cells = (name.removesuffix(".cu"), str(row["family"]), before, _now(row))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _before(row: Row) -> str:
    field, words = seen(row)
    return f"**{words}**" if field == "seen_on_0_1_0" else words


def _now(row: Row) -> str:
    status = str(row["status"])
    words = _figures(row["speed-up"], row["twin's speed-up"]) if status == "correct" else status
    return f"**accepted**: {words}" if row["problem"] else words


def _figures(score: float | None, twin: float | None) -> str:
    beside = f" (twin {twin:.2f}x)" if twin else ""
    return f"{score:.2f}x{beside}" if score else "correct, no time"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table, or writes the manifest."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cheats_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", type=Path, metavar="OLD.json")
    parser.add_argument("new", type=Path, metavar="NEW.json", nargs="?")
    parser.add_argument("--manifest", action="store_true", help="write the old figures into it")
    options = parser.parse_args(arguments)
    if options.manifest == (options.new is not None):
        parser.error("expected either NEW.json or --manifest")
    old = rows_of(options.old)
    if options.new is not None:
        print(markdown(old, rows_of(options.new)))
        return
    path = CHEATS / MANIFEST
    atomic_files.write_text(path, with_seen(path.read_text(encoding="utf-8"), old))


if __name__ == "__main__":
    main()
