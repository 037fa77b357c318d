"""What the corpus of cheats got from version 0.1.0, and what it gets now.

    python -m benchmarks.cheats_table OLD.json NEW.json     prints counts and a table in Markdown
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

from benchmarks.corpora import CHEATS, MANIFEST, NOISE, Cheat, cheats
from benchmarks.table import Row
from evoengine import atomic_files

NO_REFUSAL = "correct, which it must not be"
ENDS = ("ends the run", "blocks the run")  # in place of a status
NOT_RUN = ("cannot be run", "not reached")
REASON_CHARACTERS = 80


def rows_of(path: Path) -> dict[str, Row]:
    """The rows of a walk over the corpus of cheats, by file."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {row["file"]: row for row in rows if row.get("corpus", "cheats") == "cheats"}


def seen(row: Row, cheat: Cheat) -> tuple[str, str]:
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
    if gains:
        return "seen_on_0_1_0", figures
    if not cheat.harmless:
        return "seen_on_0_1_0", f"{NO_REFUSAL}: {figures}"
    return "why_not", f"no gain there: {figures}"


def with_seen(manifest: str, rows: Mapping[str, Row], corpus: Mapping[str, Cheat]) -> str:
    """The text of the manifest with what `rows` say in place of what it said before."""
    parts = re.split(r"^(?=\S+\.cu:$)", manifest, flags=re.MULTILINE)
    return "".join(_entry(part, rows, corpus) for part in parts)


def _entry(text: str, rows: Mapping[str, Row], corpus: Mapping[str, Cheat]) -> str:
    name = text.partition(":")[0]
    if name not in rows:
        return text
    field, words = seen(rows[name], corpus[name])
    kept = re.sub(r"^  (seen_on_0_1_0|why_not):.*\n", "", text, flags=re.MULTILINE)
    # a JSON string is a YAML string as well
    return f"{kept.rstrip()}\n  {field}: {json.dumps(words)}\n"


def counts(old: Mapping[str, Row], corpus: Mapping[str, Cheat]) -> str:
    """How many cheats got what from version 0.1.0."""
    words = [seen(row, corpus[name]) for name, row in old.items()]
    got = [text for field, text in words if field == "seen_on_0_1_0"]
    parts = {
        "a hidden size said": sum(text.startswith("its verdict says") for text in got),
        "the run ended": sum(text.startswith(ENDS) for text in got),
        NO_REFUSAL: sum(text.startswith(NO_REFUSAL) for text in got),
    }
    faster = len(got) - sum(parts.values())
    rest = ", ".join(f"{text}: {number}" for text, number in parts.items())
    return f"0.1.0: {len(got)} of {len(old)} accepted (a false speed-up: {faster}, {rest})"


def markdown(old: Mapping[str, Row], new: Mapping[str, Row], corpus: Mapping[str, Cheat]) -> str:
    """One line for each cheat of `new`: before, now, and its honest twin."""
    lines = ["| cheat | family | 0.1.0 | now |", "|---|---|---|---|"]
    for name, row in new.items():
        before = _before(old[name], corpus[name]) if name in old else "not run"
        cells = (name.removesuffix(".cu"), str(row["family"]), before, _now(row))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _before(row: Row, cheat: Cheat) -> str:
    field, words = seen(row, cheat)
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
    old, corpus = rows_of(options.old), cheats()
    if options.new is not None:
        new = rows_of(options.new)
        accepted = sum(bool(row["problem"]) for row in new.values())
        print(f"{counts(old, corpus)}; now: {accepted} of {len(new)}\n")
        print(markdown(old, new, corpus))
        return
    path = CHEATS / MANIFEST
    atomic_files.write_text(path, with_seen(path.read_text(encoding="utf-8"), old, corpus))


if __name__ == "__main__":
    main()
