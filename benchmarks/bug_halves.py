"""Half of the planted bugs of all corpora is for whoever writes diagnoses, the other is blind.

The half to look at was drawn once, with a seed. What is chosen by it (kinds of changes, their
order, words) is judged by the other, of which nothing but totals is looked at.
"""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import bug_manifest

CORPORA = ("bugs", "bugs_second", "bugs_third", "bugs_fourth")  # of which the halves were drawn
SEED = 20261125


def all_bugs() -> list[tuple[Path, str]]:
    """Every bug as the folder of its corpus and its name, corpus by corpus, by name."""
    folders = [ROOT / "tests" / name for name in CORPORA]
    return [(folder, name) for folder in folders for name in sorted(bug_manifest(folder).bugs)]


def open_half() -> list[tuple[Path, str]]:
    """The bugs that may be looked at, in the order of all."""
    known = all_bugs()
    drawn = random.Random(SEED).sample(known, len(known) // 2)  # noqa: S311 - must repeat
    return [item for item in known if item in set(drawn)]


def blind_half() -> list[tuple[Path, str]]:
    """The bugs of which nothing but totals may be looked at."""
    seen = set(open_half())
    return [item for item in all_bugs() if item not in seen]
