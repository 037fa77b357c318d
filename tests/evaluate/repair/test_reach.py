"""Planted bugs of many sorts are within reach: the planted change is among those that are known."""

from __future__ import annotations

import pytest

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import bug_manifest
from benchmarks.repair_reach import WITHIN, counts, place_of_planted
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding
from tests.evaluate.repair.small_kernel import candidate, repairing

# corpus, bug, the kind of change that mends it
REACHED = [
    ("bugs", "attention_mask_missing", "case of a flag"),
    ("bugs", "attention_mask_inverted", "range of a loop"),
    ("bugs", "attention_last_head_unwritten", "grid without a limit and by one"),
    ("bugs", "linear_bias_after_gelu", "term moved"),
    ("bugs", "rms_norm_sum_counted_four_times", "index that comes back"),
    ("bugs_second", "group_norm_uncentred_squares", "term moved"),
    ("bugs_second", "scores_lanes_misread", "coordinates of a lane"),
    ("bugs_fourth", "keys_of_the_first_batch", "begin of a row"),
    ("bugs_fourth", "rows_truncated", "call in a cast"),
    ("bugs", "adamw_betas_swapped", "args exchanged, one a line"),
    ("bugs_second", "gqa_heads_modulo", "groups for turns"),
    ("bugs_second", "gqa_keys_of_first_batch", "row of the block"),
    ("bugs_second", "rotary_pairs_interleaved", "layout of two variables"),
    ("bugs_second", "scatter_without_atomic", "atomic addition"),
    ("bugs_third", "tickets_never_start_again", "counter"),
    ("bugs_fourth", "ahead_quarters_change_places", "tiles of a fragment"),
]


@pytest.mark.parametrize(("corpus", "name", "kind"), REACHED, ids=[item[1] for item in REACHED])
def test_the_planted_change_is_known(corpus: str, name: str, kind: str) -> None:
    folder = ROOT / "tests" / corpus
    place = place_of_planted(bug_manifest(folder).bugs[name], folder)
    assert place is not None, kind


@pytest.mark.parametrize(
    ("corpus", "name"),
    [
        ("bugs", "attention_mask_missing"),
        ("bugs", "linear_bias_after_gelu"),
        ("bugs_second", "scores_lanes_misread"),
        ("bugs_fourth", "keys_of_the_first_batch"),
    ],
)
def test_its_sentence_names_the_cause(corpus: str, name: str) -> None:
    folder = ROOT / "tests" / corpus
    bug = bug_manifest(folder).bugs[name]
    place = place_of_planted(bug, folder)
    assert place is not None
    wrong = bug.candidate(folder)
    told = finding(wrong, FoundRepairs(changes=[ordered_changes(wrong)[place - 1][0]]))
    assert told is not None and bug.is_named_by([told.sentence])


def test_two_terms_of_a_statement_change_places() -> None:
    right = candidate(
        ("size_t(first + warp) * C + c", "size_t(first + warp) * C + c * 2 + lane % 4")
    )
    wrong = candidate(
        ("size_t(first + warp) * C + c", "c * 2 + size_t(first + warp) * C + lane % 4")
    )
    assert "terms exchanged" in [change.kind for change in repairing(wrong, right)]


def test_counts_are_by_place() -> None:
    row = counts("open", {"one": 1, "other": WITHIN[0] + 1, "none": None})
    assert (row["bugs"], row["first 100"], row["first 300"], row["all"]) == (3, 1, 2, 2)
