"""How early the search for a change would come to the planted one; nothing is launched.

    python -m benchmarks.repair_reach [--half open|blind|both] [--names]

The planted change, written as the manifest has it, is looked for among the changes that are known
of each wrong kernel, the likeliest first; brackets that change nothing do not count. One that has
the same effect but is written otherwise is not counted. `--names` prints the place of each bug, of
the half that may be looked at alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bug_halves import blind_half, open_half
from benchmarks.planted_bugs import CorpusKernel, PlantedBug, bug_manifest
from benchmarks.table import Row, table
from evoengine.evaluate.repair.change_order import ordered_changes

WITHIN = (100, 300, 500, 1000)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Brackets around a name or number, and a second pair around the same text.
_ONE_WORD = re.compile(r"(?<![\w>\])])\(([\w.]+)\)")
_TWICE = re.compile(r"\((\([^()]*\))\)")
_BRACKETS = range(-2, 7, 2)
_LAYOUT = str.maketrans("", "", " \n\t")


def place_of_planted(bug: PlantedBug, folder: Path) -> int | None:
    """The place, from 1, of the first change that makes the kernel the one without the bug; None
    where none does.
    """
    wrong = bug.candidate(folder)
    right = CorpusKernel(task=bug.task, file=bug.file).text(folder)
    wanted = _squeezed(right)
    longer = len(_without_layout(right)) - len(_without_layout(wrong.source))
    for place, (change, _) in enumerate(ordered_changes(wrong), start=1):
        grown = sum(
            len(piece.new.translate(_LAYOUT))
            - len(wrong.source[piece.start : piece.end].translate(_LAYOUT))
            for piece in change.pieces
        )
        brackets = grown - longer  # signs of those that are too many, if it is the one
        if brackets in _BRACKETS and _squeezed(change.applied(wrong.source)) == wanted:
            return place
    return None


def _squeezed(source: str) -> str:
    """The source without comments, layout and brackets that change nothing."""
    return _TWICE.sub(r"\1", _ONE_WORD.sub(r"\1", _without_layout(source)))


def _without_layout(source: str) -> str:
    header, end, code = source.partition("*/")
    return (header + end + _COMMENT.sub("", code)).translate(_LAYOUT)


def places(bugs: Sequence[tuple[Path, str]]) -> dict[str, int | None]:
    """The place of the planted change of each bug that has a replacement."""
    found: dict[str, int | None] = {}
    for folder, name in bugs:
        bug = bug_manifest(folder).bugs[name]
        found[f"{folder.name} {name}"] = place_of_planted(bug, folder) if bug.replace else None
    return found


def counts(half: str, found: dict[str, int | None]) -> Row:
    """How many are among the first changes."""
    known = [place for place in found.values() if place is not None]
    among = {f"first {most}": sum(place <= most for place in known) for most in WITHIN}
    return {"half": half, "bugs": len(found), **among, "all": len(known)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.repair_reach",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--half", choices=("open", "blind", "both"), default="both")
    parser.add_argument("--names", action="store_true", help="the place of each of the open half")
    options = parser.parse_args(arguments)
    rows = []
    if options.half != "blind":
        found = places(open_half())
        rows.append(counts("open", found))
        if options.names:
            print(table([{"bug": name, "place": place} for name, place in found.items()]))
    if options.half != "open":
        rows.append(counts("blind", places(blind_half())))
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
