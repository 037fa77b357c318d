"""The rest of a source speaks for some changes, which then come before others of their kind."""

from __future__ import annotations

from dataclasses import replace

from evoengine.evaluate.repair.change_evidence import ChangeEvidence, Evidence
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.source_change import SourceChange
from tests.evaluate.repair.small_kernel import candidate, code_of, repairing


def evidence_of(replaced: tuple[str, str]) -> Evidence:
    """That of the change which takes `replaced` back."""
    wrong = candidate(replaced)
    right, old = replaced
    start = wrong.source.index(old)
    change = SourceChange(start, start + len(old), right, "by hand")
    return ChangeEvidence(code_of(wrong)).of(change)


def test_a_change_that_reads_what_nothing_reads_is_known() -> None:
    assert evidence_of(("weight[c] * scale;", "weight[c];")).uses_unused
    assert not evidence_of(("first + warp", "first")).uses_unused


def test_a_change_that_reads_the_variable_of_a_loop_that_nothing_else_reads_is_known() -> None:
    idle = (
        "float value = x[size_t(first + warp) * C + c]",
        "float value = x[size_t(first + warp)]",
    )
    rest = ("weight[c] * scale", "weight[lane] * scale")
    wrong = candidate(idle, rest)
    code = code_of(wrong)
    assert [item.name for item in code.idle_loops] == ["c"]
    start = wrong.source.index("weight[lane]") + len("weight[")
    inside = SourceChange(start, start + len("lane"), "c", "by hand")
    assert ChangeEvidence(code).of(inside).reads_idle
    start = wrong.source.index("parts[warp][0] = sum") + len("parts[")
    behind = SourceChange(start, start + len("warp"), "c", "by hand")
    assert not ChangeEvidence(code).of(behind).reads_idle
    assert not code_of(candidate()).idle_loops


def test_words_that_follow_one_another_elsewhere_are_familiar() -> None:
    assert not evidence_of(("threadIdx.x / 32", "threadIdx.y / 32")).is_familiar
    known = candidate(("threadIdx.x < ROWS && first", "threadIdx.x < ROWS && warp"))
    start = known.source.index("&& warp") + 3
    change = SourceChange(start, start + len("warp"), "first", "by hand")
    assert not ChangeEvidence(code_of(known)).of(change).is_familiar  # "&& first" is nowhere else
    start = known.source.index("out[first + threadIdx")
    same = SourceChange(start, start + len("out[first"), "out[first", "by hand")
    assert ChangeEvidence(code_of(known)).of(same).is_familiar


def test_a_change_after_which_nothing_reads_a_variable_is_known() -> None:
    known = candidate()
    start = known.source.index(" * scale;")
    dropped = SourceChange(start, start + len(" * scale"), "", "by hand")
    assert ChangeEvidence(code_of(known)).of(dropped).leaves_unread
    read_again = replace(dropped, new=" / scale")
    assert not ChangeEvidence(code_of(known)).of(read_again).leaves_unread


def test_a_change_without_a_name_has_no_evidence() -> None:
    assert evidence_of(("c += 32", "c += 64")) == Evidence()


def test_a_variable_that_is_read_once_is_rare() -> None:
    known = candidate()
    start = known.source.index(" * scale;")
    added = SourceChange(start, start, " * value", "by hand")
    assert ChangeEvidence(code_of(known)).of(added).is_rare is False  # in three places
    assert ChangeEvidence(code_of(known)).of(replace(added, new=" * top")).is_rare


def test_a_factor_that_nothing_reads_comes_before_others_that_could_be_missing() -> None:
    wrong = candidate(("weight[c] * scale;", "weight[c];"))
    (right,) = repairing(wrong, candidate())[:1]
    order = [change for change, _ in ordered_changes(wrong)]
    same_kind = [change for change in order if change.kind == right.kind]
    assert same_kind.index(right) < 25
    assert order.index(right) < len(order) / 10
