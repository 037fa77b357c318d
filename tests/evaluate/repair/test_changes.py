"""Small mistakes of many kinds: one of the changes of the wrong kernel is the right one."""

from __future__ import annotations

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import CandidateError
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.repair_job import changed_candidate
from tests.evaluate.repair.small_kernel import SOURCE, candidate, repairing

# what is right, and what stands there in the wrong kernel
MISTAKES = [
    ("int step = 16;", "int step = 8;"),
    ("step > 0;", "step > 1;"),
    ("threadIdx.x % 32", "threadIdx.x / 32"),
    ("threadIdx.x % 32", "blockIdx.x % 32"),
    ("c < C;", "c <= C;"),
    ("c < C;", "c < N;"),
    ("c < C;", "c + 1 < C;"),
    ("c += 32", "c += 64"),
    ("c = lane;", "c = 0;"),
    ("weight[c]", "weight[lane]"),
    ("weight[c]", "x[c]"),
    ("value * weight[c] * scale", "value * weight[c]"),
    ("value * weight[c] * scale", "value + weight[c] * scale"),
    ("(first + warp) * C + c", "(first + warp) * N + c"),
    ("(first + warp) * C", "(first) * C"),
    ("sum += value", "sum -= value"),
    ("sum += value", "sum = value"),
    ("fmaxf(top, value)", "fminf(top, value)"),
    ("fmaxf(top, value)", "fmaxf(value, top)"),
    ("__shfl_xor_sync", "__shfl_down_sync"),
    ("    __syncthreads();\n", ""),
    ("    sum = warp_sum(sum);", "    sum = sum;"),
    ("lane == 0", "lane != 0"),
    ("parts[threadIdx.x][0]", "parts[warp][0]"),
    ('"ceil_div(N, 4)"', '"N // 4"'),
    ("[x, weight, out,", "[weight, x, out,"),
    ("THREADS: [128, 256]", "THREADS: [96, 256]"),
]


@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_one_of_the_changes_of_a_wrong_kernel_is_the_right_one(right: str, wrong: str) -> None:
    assert repairing(candidate((right, wrong)), candidate())


def test_no_change_is_there_twice_and_none_leaves_the_source_as_it_is() -> None:
    found = candidate()
    changed = [change.applied(found.source) for change, _ in ordered_changes(found)]
    assert len(set(changed)) > 0.97 * len(changed)  # some differ in how they are written alone
    assert SOURCE not in changed


def test_the_likeliest_changes_come_first() -> None:
    likeliness = [value for _, value in ordered_changes(candidate())]
    assert likeliness == sorted(likeliness, reverse=True)


def test_comments_and_directives_are_not_changed() -> None:
    noted = candidate(
        ("    float top", "    // the loop of 77 columns\n#pragma unroll 55\n    float top")
    )
    for change, _ in ordered_changes(noted):
        if change.kind != "statements exchanged":  # what is between them goes with them
            changed = change.applied(noted.source)
            assert "// the loop of 77 columns\n#pragma unroll 55\n" in changed


def test_a_changed_candidate_keeps_the_values_of_its_tunables() -> None:
    tuned = candidate().tuned({"THREADS": 256})
    code_change = next(
        change for change, _ in ordered_changes(tuned) if change.kind == "comparison by one"
    )
    assert changed_candidate(tuned, code_change).tunables == {"THREADS": 256}


def test_a_change_that_breaks_the_plan_is_refused_by_the_parser() -> None:
    broken = SOURCE.replace("block: [THREADS]", "block: [")
    with pytest.raises(CandidateError):
        kernel_file.parse(broken)
