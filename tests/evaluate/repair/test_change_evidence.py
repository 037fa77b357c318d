"""The rest of a source speaks for some changes, which then come before others of their kind."""

from __future__ import annotations

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


def test_words_that_follow_one_another_elsewhere_are_familiar() -> None:
    assert evidence_of(("threadIdx.x / 32", "threadIdx.y / 32")) == Evidence()
    known = candidate(("threadIdx.x < ROWS && first", "threadIdx.x < ROWS && warp"))
    start = known.source.index("&& warp") + 3
    change = SourceChange(start, start + len("warp"), "first", "by hand")
    assert not ChangeEvidence(code_of(known)).of(change).is_familiar  # "&& first" is nowhere else
    start = known.source.index("out[first + threadIdx")
    same = SourceChange(start, start + len("out[first"), "out[first", "by hand")
    assert ChangeEvidence(code_of(known)).of(same).is_familiar


def test_a_factor_that_nothing_reads_comes_before_others_that_could_be_missing() -> None:
    wrong = candidate(("weight[c] * scale;", "weight[c];"))
    (right,) = repairing(wrong, candidate())[:1]
    order = [change for change, _ in ordered_changes(wrong)]
    same_kind = [change for change in order if change.kind == right.kind]
    assert same_kind.index(right) < 25
    assert order.index(right) < len(order) / 10
