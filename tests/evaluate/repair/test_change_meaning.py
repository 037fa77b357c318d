"""What a change means is said in the names of the kernel, with the direction of the mistake."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.name_roles import role_of
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.words.change_meaning import _MEANINGS
from tests.evaluate.repair.small_kernel import candidate, repairing

SAID = [
    (("int step = 16;", "int step = 8;"), "only a part of the lanes, such as half of them"),
    (("int step = 16;", "int step = 32;"), "too many lanes, so that neighbouring rows are mixed"),
    (("step > 0;", "step > 1;"), "only a part of the lanes"),
    (("c += 32", "c += 64"), "some, such as every other one, are skipped"),
    (("c = lane;", "c = lane + 1;"), "off by one"),
    (("threadIdx.x % 32", "threadIdx.x % 16"), "comes back after 16 in place of 32"),
    (("* weight[c] * scale", "* weight[c]"), "the factor scale is missing"),
    (("weight[c]", "weight[lane]"), "lane is taken in place of c in the index of weight"),
    (
        ("sum += value", "sum -= value"),
        "sum has the wrong sign: it is subtracted in place of added",
    ),
    (("fmaxf(top, value)", "fminf(top, value)"), "the minimum is taken in place of the maximum"),
    (("top = -INFINITY", "top = 0.0f"), "it begins with 0.0f in place of minus infinity"),
    (("    __syncthreads();\n", ""), "a barrier is missing"),
    (('"ceil_div(N, 4)"', '"N // 4"'), "the grid is rounded down"),
    (("[x, weight, out,", "[weight, x, out,"), "exchanged"),
]


def test_a_value_of_the_plan_that_is_rounded_down_is_no_grid() -> None:
    rows = ('    grid: ["ceil_div(N, 4)", B]', "    grid: [4, B]")
    wrong = candidate(("launches:", "let:\n  SPAN: N // 4\nlaunches:"), rows)
    changes = [one for one, _ in ordered_changes(wrong) if one.kind == "plan rounded down"]
    told = finding(wrong, FoundRepairs(changes=changes[:1]))
    assert told is not None
    assert "N // 4 is rounded down" in told.sentence and "grid" not in told.sentence


@pytest.mark.parametrize(("replaced", "said"), SAID)
def test_the_sentence_says_what_was_wrong(replaced: tuple[str, str], said: str) -> None:
    wrong = candidate(replaced)
    changes = repairing(wrong, candidate())
    if "INFINITY" in replaced[0]:  # written otherwise
        kind = "float zero to infinity"
        changes = [item for item, _ in ordered_changes(wrong) if item.kind == kind]
    told = finding(wrong, FoundRepairs(changes=changes[:1]))
    assert told is not None
    assert said in told.sentence
    assert told.sentence.startswith(f"Line {told.evidence['line']}: with ")
    assert "every output of every case is right:" in told.sentence


@pytest.mark.parametrize(
    ("kind", "old", "said"),
    [
        ("condition negated", "c == 0", "is the wrong way round (inverted)"),
        ("condition dropped", "c == 0", "only where c == 0, in the first round"),
        (
            "condition dropped",
            "lane == 0",
            "a condition is too many, so that some are left out, in",
        ),
        ("condition of a value missing", "value", "a guard is missing"),
        ("condition added", "c == 0", "the condition is wrong"),
    ],
)
def test_what_a_changed_condition_means(kind: str, old: str, said: str) -> None:
    wrong = candidate(("        top = fmaxf(top, value);", "        if (c == 0) top = value;"))
    changes = [change for change, _ in ordered_changes(wrong)]
    of_kind = [it for it in changes if it.kind == kind and wrong.source[it.start : it.end] == old]
    told = finding(wrong, FoundRepairs(changes=of_kind[:1]))
    assert told is not None and said in told.sentence


def test_other_changes_are_counted() -> None:
    wrong = candidate(("int step = 16;", "int step = 8;"))
    changes = [change for change, _ in ordered_changes(wrong)][:3]
    told = finding(wrong, FoundRepairs(changes=changes))
    assert told is not None
    assert "(2 other changes would, too)" in told.sentence
    assert len(told.evidence["others"]) == 2


@pytest.mark.parametrize(
    ("old", "new", "is_off"),
    [
        ("step", "0", True),
        ("step", "1", True),
        ("scale", "0.0f", True),
        ("1.0f", "0.0f", True),
        ("1.0f", "2.0f", False),
        ("0.0f", "1.0f", False),
        ("1", "0", False),  # where a loop begins
        ("step / 2", "0", False),
        ("step", "2", False),
    ],
)
def test_names_made_0_or_1_and_factors_made_0_may_only_switch_something_off(
    old: str, new: str, is_off: bool
) -> None:
    assert SourceChange(0, len(old), new, "kind").switches_off(old) is is_off


def test_a_change_that_only_keeps_a_part_from_running_comes_last() -> None:
    wrong = candidate(("int step = 16;", "int step = 8;"))
    start = wrong.source.index("c < ") + len("c < ")
    end = wrong.source.index(";", start)
    off = SourceChange(start, end, "0", "number for a name")
    right = repairing(wrong, candidate())[0]
    told = finding(wrong, FoundRepairs(changes=[off, right]))
    alone = finding(wrong, FoundRepairs(changes=[off]))
    assert told is not None and told.evidence["line"] == right.line(wrong.source)
    assert alone is not None and alone.evidence["line"] == off.line(wrong.source)
    assert (
        alone.evidence["may avoid"] and "may only keep the mistake from showing" in alone.sentence
    )
    assert not told.evidence["may avoid"] and "may only" not in told.sentence


def test_without_a_change_there_is_no_finding() -> None:
    assert finding(candidate(), FoundRepairs()) is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("row_max", "maximum"),
        ("new_top", "maximum"),
        ("sums", "sum"),
        ("keyHead", "heads"),
        ("key_tile2", "tiles"),
        ("ix", ""),
    ],
)
def test_names_say_what_they_stand_for(name: str, role: str) -> None:
    assert role_of(name) == role


@pytest.mark.unsampled
def test_no_kind_of_change_is_told_in_the_words_of_a_more_general_one() -> None:
    beginnings = [beginning for beginning, _ in _MEANINGS]
    for number, beginning in enumerate(beginnings):
        assert not [one for one in beginnings[:number] if beginning.startswith(one)], beginning


def test_a_number_that_is_taken_away_makes_a_loop_end_too_early() -> None:
    wrong = candidate(("c < C;", "c < C - 1;"))
    start = wrong.source.index("C - 1;") + len("C - ")
    change = SourceChange(start, start + 1, "0", "number one less in a loop")
    told = finding(wrong, FoundRepairs(changes=[change]))
    assert told is not None
    assert "the loop ends too early: the last ones" in told.sentence
