"""Mistakes that were written down and never launched: each fits its kernel, and some are undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import CorpusKernel
from benchmarks.repair_reach import counts, place_of_planted, places_of_mistakes, written_mistakes

FILES = sorted((ROOT / "tests" / "mistakes").glob("*.jsonl"))
# the text that is right, of mistakes that kinds were made by
UNDONE = [
    "& 255, high",
    "shared: 64 * K",
    "wanted -= shared_above",
    "sum *= __expf(top - v), top = v",
    "if (whole) break",
    "filters + blockIdx.z % C * 9",
]


def with_text(part: str) -> CorpusKernel:
    found = [
        item
        for path in FILES
        for item in written_mistakes(path)
        if path.stem != "held_back" and item.replace and part in item.replace[0]
    ]
    assert found, part
    return found[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_fits_its_kernel_and_changes_it(path: Path) -> None:
    mistakes = written_mistakes(path)
    assert len(mistakes) >= 100
    for item in mistakes:
        right = CorpusKernel(task="", file=item.file).candidate(ROOT)
        assert item.candidate(ROOT).source != right.source


@pytest.mark.parametrize("part", UNDONE)
def test_mistakes_that_kinds_were_made_by_are_undone(part: str) -> None:
    place = place_of_planted(with_text(part), ROOT)
    assert place is not None and place <= 1000


def test_what_no_change_undoes_is_counted_as_a_mistake_alone() -> None:
    known = with_text("shared: 64 * K")
    right, _ = known.replace or ("", "")
    unknown = known.model_copy(update={"replace": (right, "shared: 77 * 8 + 3")})
    found = places_of_mistakes([known, unknown])
    assert found["0"] is not None and found["1"] is None
    row = counts("some", found)
    assert (row["bugs"], row["all"]) == (2, 1)
