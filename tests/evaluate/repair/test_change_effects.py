"""What changes did decides which come next."""

from __future__ import annotations

import pytest

from benchmarks.corpora import ROOT
from benchmarks.planted_bugs import bug_manifest
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.avoiding_change import may_avoid
from evoengine.evaluate.repair.change_effects import ChangeEffect, ChangeEffects, effect_of
from evoengine.evaluate.repair.change_order import _once, kernel_code, ordered_changes
from evoengine.evaluate.repair.change_queue import ChangeQueue, LaunchedChanges
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.told_changes import told_by
from evoengine.records import CaseCheck
from tests.evaluate.repair.test_repair_search import set_check


def check(error: float, failing: float = 1.0, nans: int = 0, ok: bool = False) -> CaseCheck:
    """What was compared on one input set."""
    figures = {"max_abs": error, "rel_rmse": error, "failing_share": failing, "nan_count": nans}
    compared = set_check(0, ok).model_copy(update=figures)
    return CaseCheck(case="small", hidden=False, ok=ok, sets=(compared,))


WRONG = check(1.4)


def wrong_kernel(name: str) -> tuple[Candidate, range]:
    """A planted bug of the second corpus with its lines."""
    folder = ROOT / "tests" / "bugs_second"
    bug = bug_manifest(folder).bugs[name]
    return bug.candidate(folder), bug.planted_lines(folder)


def test_a_smaller_error_is_better_and_zeros_are_not() -> None:
    assert effect_of(WRONG, WRONG) is ChangeEffect.none
    assert effect_of(WRONG, check(0.5)) is ChangeEffect.better
    assert effect_of(WRONG, check(1.0, failing=0.9)) is ChangeEffect.other  # all zero
    assert effect_of(WRONG, check(0.5, nans=3)) is ChangeEffect.other
    assert effect_of(WRONG, check(3.0)) is ChangeEffect.other


def test_a_change_that_could_not_be_launched_says_little() -> None:
    strayed = CaseCheck(case="small", hidden=False, ok=False, sets=())
    assert effect_of(WRONG, strayed) is ChangeEffect.other


def by_line(candidate: Candidate) -> dict[int, list[SourceChange]]:
    """The changes of each line of the code, in their order."""
    found: dict[int, list[SourceChange]] = {}
    for change, _ in ordered_changes(candidate):
        found.setdefault(change.line(candidate.source), []).append(change)
    return found


def test_statements_whose_changes_help_come_forward_and_idle_ones_go_back() -> None:
    candidate, lines = wrong_kernel("conv_window_shifted")
    effects = ChangeEffects(kernel_code(candidate))
    changes = by_line(candidate)
    (planted,) = lines
    elsewhere = next(line for line in changes if abs(line - planted) > 2)
    helpful, idle = changes[planted][0], changes[elsewhere][0]
    effects.saw(helpful, WRONG, check(0.6))
    for _ in range(3):
        effects.saw(idle, WRONG, WRONG)
    assert effects.odds(effects.statements(helpful)) > 2
    assert effects.odds(effects.statements(idle)) < 0.3
    effects.saw(idle, WRONG, check(2.0))
    for _ in range(3):
        effects.saw(idle, WRONG, check(2.0))
    assert effects.odds(effects.statements(idle)) == 1.0  # it does alter what is wrong


def test_two_changes_that_both_help_are_made_as_one_once() -> None:
    candidate, lines = wrong_kernel("conv_window_shifted")
    effects = ChangeEffects(kernel_code(candidate))
    changes = by_line(candidate)
    one = changes[lines[0]][0]
    other = next(
        found[0]
        for line, found in changes.items()
        if line not in lines and effects.statements(found[0]) != effects.statements(one)
    )
    effects.saw(one, WRONG, check(0.6))
    effects.saw(changes[lines[0]][1], WRONG, check(0.7))  # of the same statement
    assert list(effects.pairs()) == []
    effects.saw(other, WRONG, check(0.5))
    pairs = list(effects.pairs())
    assert {piece.start for pair in pairs for piece in pair.pieces} >= {one.start, other.start}
    assert list(effects.pairs()) == []


def test_the_queue_hands_out_every_change_once_and_follows_what_was_seen() -> None:
    candidate, lines = wrong_kernel("conv_window_shifted")
    plain, steered = ChangeQueue(candidate), ChangeQueue(candidate)
    assert len(plain) == len(ordered_changes(candidate))
    first = steered.taken()
    assert isinstance(first, list)
    wanted = [change for change in by_line(candidate)[lines[0]]][:2]
    seen = [(change, check(0.6)) for change in wanted]
    steered.saw(LaunchedChanges(WRONG, seen))
    plain.taken()
    assert _of_line(steered, candidate, lines) > _of_line(plain, candidate, lines)
    while plain.taken() is not None:
        pass
    assert len(plain) == 0


def _of_line(queue: ChangeQueue, candidate: Candidate, lines: range) -> int:
    """How many of the next changes that share a code stand in `lines`."""
    while not isinstance(taken := queue.taken(), list):
        assert taken is not None
    return sum(item.change.line(candidate.source) in lines for item in taken)


def test_what_findings_say_comes_first() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    code = kernel_code(candidate)
    said = (
        "weight[:, None] is taken from another element: the output equals the reference with it so."
    )
    told, nothing = told_by(code, [said]), told_by(code, ["out is wrong everywhere."])
    effects = ChangeEffects(code)
    changes = [change for change, _ in ordered_changes(candidate)]
    start = candidate.source.index("weight[blockIdx.x]")
    (reads,) = effects.statements(next(item for item in changes if item.start == start))
    assert told.odds("index of another array", [reads]) > told.odds("barrier missing", [reads]) > 1
    assert told.odds("barrier missing", []) == 1.0
    assert nothing.odds("index of another array", [reads]) == 1.0


@pytest.mark.parametrize(
    ("said", "likelier"),
    [
        ("race: no __syncthreads() between the write at line {line} (thread 0) and the read", True),
        ("uninitialised: thread 100 reads weight+22 at line 2, which was never written", True),
        ("uninitialised: thread 100 reads shared+22 at line 2, which was never written", False),
        ("out is wrong everywhere, by the factor of line {line}", False),
    ],
)
def test_what_a_fault_names_comes_first(said: str, likelier: bool) -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    code = kernel_code(candidate)
    changes = [change for change, _ in ordered_changes(candidate)]
    start = candidate.source.index("weight[blockIdx.x]")
    (reads,) = ChangeEffects(code).statements(next(one for one in changes if one.start == start))
    line = candidate.source.count("\n", 0, start) + 1
    told = told_by(code, [said.format(line=line)])
    assert (told.odds("sign", [reads]) > 1.0) == likelier


def test_a_race_speaks_for_barriers() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    told = told_by(kernel_code(candidate), ["race: no __syncthreads() between two lines"])
    assert told.odds("barrier missing", []) > told.odds("sign", []) == 1.0


def test_scratch_that_nothing_was_written_to_speaks_for_filling_it() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    said = (
        "uninitialised: thread 0 reads sums+0 at line 9, global memory to which nothing was written"
    )
    told = told_by(kernel_code(candidate), [said])
    assert told.odds("scratch not filled", []) > told.odds("reset of an array", []) > 1.0


def test_a_barrier_near_the_lines_of_a_race_comes_before_all_else_but_the_other_stage() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    code = kernel_code(candidate)
    changes = [change for change, _ in ordered_changes(candidate)]
    barriers = [change for change in changes if change.kind == "barrier missing"]
    near, far = barriers[0], max(barriers, key=lambda one: abs(one.start - barriers[0].start))
    line = candidate.source.count("\n", 0, near.start) + 1
    told = told_by(
        code, [f"race: no __syncthreads() between the write at line {line} and the read"]
    )
    effects = ChangeEffects(code)
    close, distant = (told.odds("barrier missing", effects.statements(one)) for one in (near, far))
    assert close > 10 * distant
    assert told.odds("other stage of a buffer", []) > told.odds("sign", [])


def test_an_access_beyond_shared_memory_speaks_for_reserving_more() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    said = "out of bounds: thread 0 writes 4 bytes at sums (shared+4096) at line 9, 4 bytes beyond its end"
    told = told_by(kernel_code(candidate), [said])
    more = told.odds("shared memory of another size", [])
    assert more == told.odds("stages of shared memory", []) > told.odds("bound missing", []) > 1.0


def test_blocks_that_race_speak_for_what_they_count() -> None:
    code = KernelCode("__global__ void k(int* n) { n[0] = 1; atomicAdd(n, 1); }", 0)
    atomic = code.statements[1][0]
    said = "race: thread 0 writes n+0 at line 9 that thread 0 of block 9 wrote at line 9"
    assert told_by(code, [said]).odds("sign", [atomic]) > 1.0
    within = "race: no __syncthreads() between the write at line 9 and the read at line 9"
    assert told_by(code, [within]).odds("sign", [atomic]) == 1.0


def test_copies_that_are_waited_for_too_late_speak_for_the_number_of_groups() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    said = "async copy: thread 8 reads ring (shared+0) at line 9 before the cp.async at line 4 is complete"
    told = told_by(
        kernel_code(candidate), [f"{said}; the cp.async.wait_group between them must be 1 or less"]
    )
    groups = "groups of copies by one"
    assert told.odds(groups, []) > told_by(kernel_code(candidate), [said]).odds(groups, []) > 1.0
    race = (
        "race: no __syncthreads() between the write at line 4 (thread 128) and the read at line 9"
    )
    assert told_by(kernel_code(candidate), [race]).odds(groups, []) == told.odds(groups, [])


CALLING = """template <int N> __device__ void fill(float* tile, const float* x) {
    tile[threadIdx.x] = x[threadIdx.x];
}

__global__ void k(const float* x, float* out) {
    __shared__ float tile[64];
    const int n = 3;



    auto copy = [&](int i) {
        tile[threadIdx.x + 32] = x[i];
    };



    for (int i = 0; i < n; ++i) {
        fill<3>(tile, x + i);
        copy(i);



        out[i] = tile[31 - threadIdx.x];
    }
}
"""


@pytest.mark.parametrize(("line", "call"), [(2, "fill<3>(tile, x + i);"), (12, "copy(i);")])
def test_a_race_in_a_function_speaks_for_a_barrier_where_it_is_called(line: int, call: str) -> None:
    code = KernelCode(CALLING, 0)
    assert "tile[threadIdx.x" in CALLING.splitlines()[line - 1]
    told = told_by(code, [f"race: no __syncthreads() between the write at line {line}"])
    calls = [first for first, last in code.statements if code.tokens.source(first, last) == call]
    far = [
        first for first, last in code.statements if "const int n" in code.tokens.source(first, last)
    ]
    assert told.odds("barrier missing", calls) > 10 * told.odds("barrier missing", far)


@pytest.mark.parametrize(
    ("kind", "told", "avoids"),
    [
        ("grid that lacks a factor", "x is read from the wrong row", True),
        ("grid that lacks a factor", "8 of 64 elements of out are never written", False),
        ("number of the plan", "out is wrong everywhere.", True),
        ("condition of another place", "8 of 64 elements of out are never written", True),
        ("barrier missing", "out is wrong everywhere.", False),
    ],
)
def test_other_sizes_may_only_keep_a_mistake_from_showing(
    kind: str, told: str, avoids: bool
) -> None:
    assert may_avoid("N", SourceChange(0, 1, "N * C", kind), [told]) is avoids


def test_equal_changes_of_several_kinds_count_for_the_likeliest() -> None:
    candidate, _ = wrong_kernel("group_norm_weight_of_group")
    start = candidate.source.index("blockIdx.x")
    kinds = ("times a number", "grid rounded down")
    equal = [SourceChange(start, start, "2 * ", kind) for kind in kinds]
    other = SourceChange(start, start, "4 * ", "times a number")
    assert _once(candidate, [*equal, other]) == [
        (equal[0], kinds),
        (other, ("times a number",)),
    ]
