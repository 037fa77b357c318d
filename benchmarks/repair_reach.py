"""How early the search for a change would come to the planted one; nothing is launched.

    python -m benchmarks.repair_reach [--half looked|held|open|blind|both] [--names]
                                      [--mistakes FILE.jsonl ...]

The planted change, written as the manifest has it, is looked for among the changes that are known
of each wrong kernel, the likeliest first; brackets and an order of terms that change nothing do not
count (benchmarks/written_alike.py). One that has the same effect but is written otherwise is not
counted. `looked` are the bugs that kinds and their order were chosen by, `held` those that
are held back (benchmarks/bug_halves.py). `--names` prints the place of each bug that may be seen.

`--mistakes` takes, in place of planted bugs, mistakes in kernels of the repository that were
written down and never launched: tests/mistakes has files that kinds were made by, and
`held_back.jsonl`, of which nothing but the counts may be looked at.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bug_halves import blind_half, held_back, looked_at, open_half
from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import CorpusKernel, bug_manifest
from benchmarks.table import Row, table
from benchmarks.written_alike import form
from evoengine.evaluate.repair.change_order import header_end, ordered_changes
from evoengine.evaluate.repair.source_change import SourceChange

_PARTS = {"looked": looked_at, "held": held_back, "open": open_half, "blind": blind_half}
WITHIN = (100, 300, 500, 1000)
_BESIDE = 60  # characters before and behind a planted change that are compared with it


def place_of_planted(bug: CorpusKernel, folder: Path) -> int | None:
    """The place, from 1, of the first change that makes the kernel the one without the bug; None
    where none does.
    """
    wrong = bug.candidate(folder)
    planted = _Planted(bug, folder, header_end(wrong))
    changes = ordered_changes(wrong)
    found = (place for place, (change, _) in enumerate(changes, 1) if planted.is_mended_by(change))
    return next(found, None)


class _Planted:
    """A planted change, and the stretch of the wrong source in which it stands."""

    def __init__(self, bug: CorpusKernel, folder: Path, header_end: int) -> None:
        assert bug.replace is not None
        old, new = bug.replace
        right = CorpusKernel(task=bug.task, file=bug.file).text(folder)
        place = right.index(old)
        self._wrong = bug.text(folder)
        self._in_header = place < header_end
        self._begin, self._end = _stretch(self._wrong, place, place + len(new), header_end)
        self._right = right[self._begin : self._end + len(right) - len(self._wrong)]
        self._wanted = self._form(self._right)

    def is_mended_by(self, change: SourceChange) -> bool:
        """Whether a change gives the source without the bug, but for how it is written."""
        if any(not self._begin <= item.start <= item.end <= self._end for item in change.pieces):
            return False
        stretch = self._wrong[self._begin : self._end]
        for piece in sorted(change.pieces, key=lambda item: (item.start, item.end), reverse=True):
            start, end = piece.start - self._begin, piece.end - self._begin
            stretch = stretch[:start] + piece.new + stretch[end:]
        return self._form(stretch) == self._wanted

    def _form(self, text: str) -> str:
        return "".join(text.split()) if self._in_header else form(text)


def _stretch(source: str, begin: int, end: int, header_end: int) -> tuple[int, int]:
    """From the end of a statement before a place to the end of one behind it; of a place in the
    header all of the header.
    """
    if begin < header_end:
        return 0, header_end
    begins = (source.rfind(sign, 0, max(begin - _BESIDE, header_end)) + 1 for sign in ";{}")
    ends = (source.find(sign, end + _BESIDE) for sign in ";{}")
    found = [place for place in ends if place >= 0]
    return max(header_end, *begins), min(found) + 1 if found else len(source)


def places(bugs: Sequence[tuple[Path, str]]) -> dict[str, int | None]:
    """The place of the planted change of each bug that has a replacement."""
    found: dict[str, int | None] = {}
    for folder, name in bugs:
        bug = bug_manifest(folder).bugs[name]
        found[f"{folder.name} {name}"] = place_of_planted(bug, folder) if bug.replace else None
    return found


def written_mistakes(path: Path) -> list[CorpusKernel]:
    """The mistakes of a file, a line each: the kernel, its right text and the wrong one."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [CorpusKernel(task="", file=item["file"], replace=item["replace"]) for item in entries]


def places_of_mistakes(mistakes: Sequence[CorpusKernel]) -> dict[str, int | None]:
    """The place of the change that undoes each, by its number."""
    return {str(number): place_of_planted(item, ROOT) for number, item in enumerate(mistakes)}


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
    parser.add_argument("--half", choices=[*_PARTS, "both"], default="both")
    parser.add_argument("--names", action="store_true", help="the place of each that may be seen")
    parser.add_argument("--mistakes", metavar="FILE.jsonl", nargs="+", type=Path, default=())
    options = parser.parse_args(arguments)
    rows = [
        counts(path.stem, places_of_mistakes(written_mistakes(path))) for path in options.mistakes
    ]
    if rows:
        print(table(rows))
        return 0
    for part in ("open", "blind") if options.half == "both" else (options.half,):
        found = places(_PARTS[part]())
        rows.append(counts(part, found))
        if options.names and part in ("open", "looked"):
            print(table([{"bug": name, "place": place} for name, place in found.items()]))
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
