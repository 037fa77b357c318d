"""The old figures in the manifest of cheats, and the table of before and after."""

from __future__ import annotations

import pytest

from benchmarks.cheats_table import counts, markdown, seen, with_seen
from benchmarks.corpora import CHEATS, MANIFEST, Cheat
from evoengine.task.yaml_source import load

ROW = {
    "file": "a.cu",
    "family": "f",
    "status": "correct",
    "score": 5.46,
    "twin_score": 1.51,
    "says": "",
    "reason": "correct on every case",
}
CHEAT = Cheat(task="t", family="f", what="w", twin="a.cu", expect=())
HARMLESS = CHEAT.model_copy(update={"harmless": True})
MANIFEST_TEXT = """\
# a comment

a.cu:
  task: t
  family: f
  what: w
  twin: a.cu
  expect: [crash]
  why_not: an older walk
b.cu:
  task: t
  family: f
  what: w
  twin: a.cu
  expect: [crash]
"""


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({}, "seen_on_0_1_0", "5.46x (twin 1.51x)"),
        ({"score": 1.52}, "why_not", "no gain there: 1.52x (twin 1.51x)"),
        ({"status": "wrong_result", "score": None}, "why_not", "refused there: wrong_result"),
        ({"status": "ends the run", "reason": "E: x\ny"}, "seen_on_0_1_0", "ends the run: E: x y"),
        ({"status": "cannot be run", "reason": "r"}, "why_not", "cannot be run there: r"),
        ({"says": "N = 7"}, "seen_on_0_1_0", "its verdict says 'N = 7'"),
    ],
)
def test_a_row_of_the_old_version_says_what_was_seen_or_why_nothing_was(
    change: dict[str, object], field: str, words: str
) -> None:
    assert seen(ROW | change, HARMLESS) == (field, words)


def test_a_cheat_that_is_correct_and_not_harmless_was_accepted_without_a_gain() -> None:
    words = "correct, which it must not be: 1.52x (twin 1.51x)"
    rows = {"b.cu": ROW | {"score": 1.52}}
    assert seen(rows["b.cu"], CHEAT) == ("seen_on_0_1_0", words)
    entry = with_seen(MANIFEST_TEXT, rows, {"b.cu": CHEAT})
    assert entry.endswith(f'  seen_on_0_1_0: "{words}"\n')
    harmless = with_seen(MANIFEST_TEXT, rows, {"b.cu": HARMLESS})
    assert harmless.endswith('  why_not: "no gain there: 1.52x (twin 1.51x)"\n')


def test_the_counts_say_what_was_accepted_and_why() -> None:
    corpus = {name: HARMLESS if name < "d" else CHEAT for name in "abcdef"}
    old = {
        "a": ROW,
        "b": ROW | {"says": "77"},
        "c": ROW | {"status": "ends the run", "reason": "r"},
        "d": ROW | {"score": 1.0},
        "e": ROW | {"status": "crash", "score": None},
    }
    assert counts(old, corpus) == (
        "0.1.0: 4 of 5 accepted (a false speed-up: 1, a hidden size said: 1, the run ended: 1,"
        " correct, which it must not be: 1)"
    )


def test_the_manifest_keeps_all_but_what_it_said_before() -> None:
    text = with_seen(MANIFEST_TEXT, {"a.cu": ROW}, {"a.cu": CHEAT})
    assert text == MANIFEST_TEXT.replace(
        "  why_not: an older walk\n", '  seen_on_0_1_0: "5.46x (twin 1.51x)"\n'
    )


def test_every_entry_of_the_real_manifest_is_found() -> None:
    manifest = (CHEATS / MANIFEST).read_text(encoding="utf-8")
    names = list(load(manifest, MANIFEST).data)
    text = with_seen(manifest, dict.fromkeys(names, ROW), dict.fromkeys(names, CHEAT))
    entries = load(text, MANIFEST).data
    assert list(entries) == names
    found = {Cheat.model_validate(entry).seen_on_0_1_0 for entry in entries.values()}
    assert found == {"5.46x (twin 1.51x)"}


def test_the_table_shows_before_and_now() -> None:
    now = {
        "family": "f",
        "status": "correct",
        "speed-up": 1.4,
        "twin's speed-up": 1.6,
        "problem": "",
    }
    corpus = dict.fromkeys(("a.cu", "b.cu"), CHEAT)
    new = {"a.cu": now, "b.cu": now | {"status": "crash"}}
    lines = markdown({"a.cu": ROW}, new, corpus).splitlines()
    assert lines[2] == "| a | f | **5.46x (twin 1.51x)** | 1.40x (twin 1.60x) |"
    assert lines[3] == "| b | f | not run | crash |"
