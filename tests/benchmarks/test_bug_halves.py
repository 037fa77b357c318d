"""The open half of the planted bugs is drawn once and for all; what was called blind is in the
other.
"""

from __future__ import annotations

import json

from benchmarks.bug_halves import all_bugs, blind_half, held_back, looked_at, open_half
from benchmarks.corpora import ROOT

WALKED_BLIND = ROOT / "docs" / "measurements" / "diagnoses-repair-emulated.json"


def test_every_bug_is_in_one_of_the_halves() -> None:
    seen, blind = open_half(), blind_half()
    assert (len(seen), len(blind)) == (171, 172)
    assert sorted([*seen, *blind]) == sorted(all_bugs())


def test_the_bugs_of_the_first_blind_walk_are_in_the_blind_half() -> None:
    walked = {row["name"] for row in json.loads(WALKED_BLIND.read_text(encoding="utf-8"))["rows"]}
    assert len(walked) == 24
    assert walked <= {name for _, name in blind_half()}


def test_what_is_held_back_and_what_was_looked_at_share_nothing() -> None:
    held, looked = set(held_back()), set(looked_at())
    assert not held & looked
    assert {folder.name for folder, _ in held} == {"bugs_fourth", "bugs_fifth"}
    assert looked | held > set(all_bugs())
    assert not held & set(open_half())
