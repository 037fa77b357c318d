"""Where a wrong kernel differs from one that is right, what that one has comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.kinds.difference_changes import AS_A_LIKE_KERNEL, difference_changes
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.repair_search import RepairSearch
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs
from evoengine.protocols import SearchBar
from evoengine.records import DiagnosisKind, Verdict
from tests.evaluate.kept_fork_server import kept
from tests.evaluate.repair.small_kernel import candidate, squeezed
from tests.evaluate.repair.test_changed_launches import KERNEL, started

# what is right, and what stands there in the wrong kernel: no change of a single kernel has these
EDITS = [
    ("value * weight[c] * scale", "weight[c] * scale + __expf(value) / 7.0f"),
    ("        top = fmaxf(top, value);\n", ""),
    (
        "    sum = warp_sum(sum);\n",
        "    sum = warp_sum(sum);\n    if (lane > 7) sum = top * 3.0f;\n",
    ),
    ('grid: ["ceil_div(N, 4)", B]', 'grid: ["max(1, N // 4 - B)", B]'),
    ("THREADS: [128, 256]", "THREADS: [64]"),
    ("first + threadIdx.x < N) out[first + threadIdx.x]", "first < N) out[first * 2]"),
]
OTHER = """/* evoengine
name: nothing_alike
precision: fp32
launches:
  - kernel: copied
    grid: [1]
    block: [32]
    args: [x, out]
*/
extern "C" __global__ void copied(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x];
}
"""


def going_back(wrong: Candidate, right: Candidate) -> list[int]:
    """The places in the order of the changes that make one kernel of the other."""
    wanted = squeezed(right.source)
    changes = [change for change, _ in ordered_changes(wrong, [right])]
    return [
        place
        for place, change in enumerate(changes)
        if squeezed(change.applied(wrong.source)) == wanted and change.like
    ]


@pytest.mark.parametrize(("right", "wrong"), EDITS)
def test_one_edit_is_undone_first(right: str, wrong: str) -> None:
    places = going_back(candidate((right, wrong)), candidate())
    assert places and places[0] < 4  # the tokens that differ, and the lines that have them


def test_each_of_two_edits_is_undone_by_itself() -> None:
    one, other = EDITS[0], EDITS[1]
    both = candidate(one, other)
    undone = {
        squeezed(change.applied(both.source)) for change in difference_changes(both, candidate())
    }
    assert {squeezed(candidate(one).source), squeezed(candidate(other).source)} <= undone


def test_names_and_comments_are_no_difference() -> None:
    renamed = candidate(
        ("name: row_sums\n", "name: sums_of_rows  # better\n"),
        ("    __syncthreads();", "    __syncthreads();  // all of them"),
    )
    assert not list(difference_changes(renamed, candidate()))


def test_kernels_that_have_little_in_common_are_not_compared() -> None:
    assert not list(difference_changes(candidate(), kernel_file.parse(OTHER)))
    assert not any(
        change.like for change, _ in ordered_changes(candidate(), [kernel_file.parse(OTHER)])
    )


def test_a_change_that_is_known_keeps_its_kind_which_says_what_it_mends() -> None:
    wrong = candidate(("int step = 16;", "int step = 8;"))
    first = ordered_changes(wrong, [candidate()])[0][0]
    assert first.like == "row_sums" and first.kind != AS_A_LIKE_KERNEL


def test_layout_alone_makes_no_other_change_of_a_known_one() -> None:
    wrong = candidate(("    __syncthreads();\n", ""))
    first = ordered_changes(wrong, [candidate()])[0][0]
    assert first.like == "row_sums" and first.kind.startswith("barrier missing")


def test_the_finding_says_whose_text_it_is() -> None:
    right, wrong = EDITS[0]
    found = candidate((right, wrong))
    change = next(iter(difference_changes(found, candidate())))
    told = finding(found, FoundRepairs(changes=[change]))
    assert told is not None
    assert ", as row_sums has it, every output of every case is right" in told.sentence
    assert "the edit of that kernel is wrong" in told.sentence


@pytest.mark.timeout(120)
def test_a_search_finds_what_only_the_like_kernel_has(tmp_path: Path) -> None:
    right = kernel_file.parse(KERNEL.replace("3 * x[i]", "2 * x[i]"))
    wrong = kernel_file.parse(KERNEL.replace("3 * x[i]", "(x[i] ^ 0x155) - 77"))

    async def run(likes: list[Candidate]) -> list[SourceChange]:
        executor = await started(tmp_path)
        try:
            bench = Workbench(executor.compiler, executor.device)
            search = RepairSearch(bench, limits_of_arch("sm_89"), likes=likes)
            found = await search.find(wrong, WrongInputs("small", 0), 8.0, lambda _: None)
            return found.changes
        finally:
            await executor.close()

    assert not kept().run(run([]))
    found = kept().run(run([right]))
    assert found and found[0].like == "triple"
    assert "2 * x[i]" in found[0].applied(wrong.source)


@pytest.mark.timeout(120)
def test_a_wrong_candidate_of_a_search_is_compared_with_its_parents_alone(tmp_path: Path) -> None:
    right = kernel_file.parse(KERNEL.replace("3 * x[i]", "2 * x[i]"))
    wrong = kernel_file.parse(KERNEL.replace("3 * x[i]", "(x[i] ^ 0x155) - 77"))
    simple = kernel_file.parse(KERNEL)  # which a change of its own would mend

    async def run() -> list[Verdict]:
        executor = await started(tmp_path)
        try:
            return [
                await executor.evaluate(candidate, lambda _: None, search=SearchBar(None, parents))
                for candidate, parents in ((wrong, (right,)), (wrong, ()), (simple, (wrong,)))
            ]
        finally:
            await executor.close()

    verdicts = kept().run(run())
    found = [item.forensics.diagnoses for item in verdicts if item.forensics]
    kinds = [{item.kind for item in diagnoses} for diagnoses in found]
    assert [DiagnosisKind.changed_source in item for item in kinds] == [True, False, False]
    assert "as triple has it" in found[0][0].sentence
