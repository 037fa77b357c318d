"""Half of the planted bugs of all corpora is for whoever writes diagnoses, the other is blind.

The half to look at was drawn once, with a seed. What is chosen by it (kinds of changes, their
order, words) is judged by the other, of which nothing but totals is looked at. On 2026-11-26 the
blind half of the first three corpora was looked at too; what is held back since is the blind part
of the fourth, and the fifth.
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


def held_back() -> list[tuple[Path, str]]:
    """The bugs of which nothing but totals may be looked at since 2026-11-26."""
    fifth = ROOT / "tests" / "bugs_fifth"
    fourth = [item for item in blind_half() if item[0].name == "bugs_fourth"]
    return fourth + [(fifth, name) for name in sorted(bug_manifest(fifth).bugs)]


def looked_at() -> list[tuple[Path, str]]:
    """The bugs of the first four corpora that are not held back."""
    held = set(held_back())
    return [item for item in all_bugs() if item not in held]


def blind_half() -> list[tuple[Path, str]]:
    """The bugs of which nothing but totals was looked at until 2026-11-26."""
    seen = set(open_half())
    return [item for item in all_bugs() if item not in seen]
