"""Many changes share one source: each stands there as an alternative with its number."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.planted_bugs import bug_task
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.repair.change_order import header_end, ordered_changes
from evoengine.evaluate.repair.change_queue import ChangeQueue
from evoengine.evaluate.repair.repair_job import ChangeCompiler, CompiledChanges
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import Form, SwitchedChange, switched
from evoengine.evaluate.repair.switched_source import SELECT, plain_loops, switched_source
from tests.evaluate.repair.small_kernel import candidate, code_of


def switched_changes(of: Candidate) -> list[SwitchedChange]:
    code = code_of(of)
    found = (switched(code, change) for change, _ in ordered_changes(of))
    return [item for item in found if item is not None]


def change(of: Candidate, old: str, new: str, kind: str = "number") -> SourceChange:
    start = of.source.index(old)
    return SourceChange(start, start + len(old), new, kind)


def test_a_value_is_taken_whole_and_a_statement_too() -> None:
    kernel = candidate()
    code = code_of(kernel)
    value = switched(code, change(kernel, "warp) * C", "warp) * N"))
    assert value is not None and value.form is Form.value
    assert kernel.source[value.start : value.end] == "size_t(first + warp) * C + c"
    assigned = switched(code, change(kernel, "+= value *", "-= value *"))
    assert assigned is not None and assigned.form is Form.statement
    assert assigned.new == "sum -= value * weight[c] * scale;"


@pytest.mark.parametrize(
    "declared",
    [
        "const Slot& own = ring[0];",
        "Slot* own = ring;",
        "Slot own(ring);",
        "nvcuda::wmma::fragment<A, 16> own;",
    ],
)
def test_a_declaration_of_an_own_type_stays_where_it_is(declared: str) -> None:
    kernel = candidate(("sum = warp_sum(sum);", f"{declared} sum = warp_sum(sum);"))
    start = kernel.source.index(declared)
    moved = SourceChange(start, start + len(declared), "sum = 0.0f;", "statement")
    assert switched(code_of(kernel), moved) is None


def test_an_element_of_an_object_is_no_copy_and_half_a_choice_no_value() -> None:
    kernel = candidate(
        ("float top = -INFINITY", "Tile tiles[2]; const int other = 1; float top = -INFINITY"),
        ("sum = warp_sum(sum);", "mma(tiles[0], lane > 4 ? sum : top); sum = warp_sum(sum);"),
    )
    element = switched(code_of(kernel), change(kernel, "mma(tiles[0]", "mma(tiles[1]"))
    assert element is not None and element.form is Form.value  # of the call
    start = kernel.source.index("tiles[0]")
    whole = switched(code_of(kernel), SourceChange(start, start + 8, "tiles[1]", "name"))
    assert whole is not None and whole.form is Form.place
    choice = switched(code_of(kernel), change(kernel, "sum : top", "top : sum"))
    assert choice is not None and choice.form is Form.statement


def test_what_an_instruction_writes_is_switched_with_it() -> None:
    asm = 'asm("mul.f32 %0, %1, %2;" : "=f"(sum) : "f"(sum), "f"(scale));'
    kernel = candidate(("sum = warp_sum(sum);", asm))
    place = kernel.source.index('"=f"(sum)') + len('"=f"(')
    written = switched(code_of(kernel), SourceChange(place, place + 3, "top", "name"))
    assert written is not None and written.form is Form.statement
    assert written.new == asm.replace('"=f"(sum)', '"=f"(top)')
    read = switched(code_of(kernel), change(kernel, '"f"(scale)', '"f"(top)'))
    assert read is not None and read.form is not Form.statement


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[ROWS][32]", "[ROWS][64]"),  # the size of an array
        ("ceil_div(N, 4)", "N // 4"),  # the launch plan
        ("template <int ROWS>", "template <int N>"),
    ],
)
def test_what_is_decided_while_compiling_is_not_switched(old: str, new: str) -> None:
    kernel = candidate()
    assert switched(code_of(kernel), change(kernel, old, new)) is None


@pytest.mark.parametrize(
    ("wait", "old", "new"),
    [
        ("left<2>();", "<2>", "<1>"),
        ('asm volatile("cp.async.wait_group %0;" ::"n"(3 - 1) : "memory");', "3 - 1", "3 - 2"),
    ],
)
def test_a_wait_is_switched_whole(wait: str, old: str, new: str) -> None:
    """Its number must be known while compiling."""
    begin = "float top = -INFINITY, sum = 0.0f;"
    kernel = candidate((begin, f"{begin} {wait}"))
    number = kernel.source.index(old, kernel.source.index(wait))
    kind = SourceChange(number, number + len(old), new, "groups of copies by one")
    found = switched(code_of(kernel), kind)
    assert found is not None and found.form is Form.statement
    assert found.new == wait.replace(old, new)


def test_a_value_that_a_template_makes_is_not_switched() -> None:
    begin = "float top = -INFINITY, sum = 0.0f;"
    kernel = candidate((begin, f"{begin} sum = left<2>(top);"))
    assert switched(code_of(kernel), change(kernel, "<2>", "<1>")) is None


def test_elements_of_references_to_arrays_are_switched() -> None:
    kernel = candidate(
        (
            "float top = -INFINITY, sum = 0.0f;",
            "float top = -INFINITY, sum = 0.0f, own[2][2] = {};",
        ),
        ("top = fmaxf(top, value);", "float (&near)[2] = own[0], (&far)[2] = own[1];"),
        ("sum += value * weight[c] * scale;", "far[0] = value; sum += near[0] + far[1];"),
    )
    code = code_of(kernel)
    sorts = {item.name: item.sort for item in code.names.all}
    assert sorts["near"] == sorts["far"] == "array"
    for old in ("near[0] +", "far[1]"):
        value = switched(
            code, change(kernel, old, old.replace("[0]", "[1]").replace("far", "near"))
        )
        assert value is not None and value.form is Form.value
    assert switched(code, change(kernel, "(&far)[2]", "(&far)[4]")) is None


def test_nothing_is_put_between_an_if_and_its_else() -> None:
    kernel = candidate(
        (
            "if (lane == 0) parts[warp][0] = sum;",
            "if (lane == 0) parts[warp][0] = sum; else top = 1;",
        )
    )
    before = kernel.source.index(" else top")
    insertion = SourceChange(before, before, " top = 2;", "statement missing")
    assert switched(code_of(kernel), insertion) is None
    behind = kernel.source.index("\n    __syncthreads")
    insertion = SourceChange(behind, behind, " top = 2;", "statement missing")
    assert switched(code_of(kernel), insertion) is not None


def test_what_a_reference_stands_for_is_not_copied() -> None:
    kernel = candidate(
        (
            "float top = -INFINITY, sum = 0.0f;",
            "float top = -INFINITY, sum = 0.0f, own[2][2] = {};",
        ),
        ("top = fmaxf(top, value);", "float (&near)[2] = own[0]; float& best = own[1][0];"),
    )
    code = code_of(kernel)
    for old, new in (("own[0]", "own[1]"), ("own[1][0]", "sum")):
        value = switched(code, change(kernel, old, new))
        assert value is not None and value.form is Form.place


# Each two neighbours may be in the wrong order, so that two of three statements are alternatives
# of which each has the middle one.
IN_ORDER = """
        const float value = x[size_t(first + warp) * C + c];
        float a = value, b = value + 1.0f, d = 1.0f;
        a = b * a - d;
        b = a * d + b;
        d = b * a - d;
        top = fmaxf(top, a + d);
"""


def in_order() -> Candidate:
    old = "\n        const float value = x[size_t(first + warp) * C + c];\n        top = fmaxf(top, value);\n"
    return candidate((old, IN_ORDER))


def test_changes_that_have_only_a_part_in_common_never_share_a_code() -> None:
    queue, kernel = ChangeQueue(in_order()), in_order()
    swaps = 0
    while (taken := queue.taken()) is not None:
        if not isinstance(taken, list):
            continue
        numbered = [(number, it) for number, item in enumerate(taken, 1) for it in item.pieces]
        text = switched_source(kernel.source, header_end(kernel), numbered).text
        assert all(f"evo_is({number})" in text for number, _ in numbered)
        swaps += sum(item.change.kind == "statements in the wrong order" for item in taken)
    assert swaps >= 3


def test_two_changes_that_have_only_a_part_in_common_are_refused() -> None:
    kernel = in_order()
    swaps = [
        item
        for item in switched_changes(kernel)
        if item.change.kind == "statements in the wrong order" and not item.others
    ]
    one, other = sorted(swaps, key=lambda item: item.start)[:2]
    assert one.crosses(other) and other.crosses(one) and not one.crosses(one)
    with pytest.raises(ValueError, match="only a part in common"):
        switched_source(kernel.source, header_end(kernel), [(1, one), (2, other)])


def test_every_line_of_an_alternative_knows_its_number() -> None:
    kernel = candidate()
    changes = list(enumerate(switched_changes(kernel)[:40], start=1))
    written = switched_source(kernel.source, header_end(kernel), changes)
    lines = written.text.split("\n")
    assert len(lines) == len(written.line_numbers)
    for number, _ in changes:
        (line,) = [text for text in lines if f"evo_is({number})" in text]
        assert written.line_numbers[lines.index(line)] == (number,)
    assert SELECT in written.text


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("#pragma unroll 4\n", "\n"),
        ("#pragma GCC unroll 4\n", "\n"),
        ("#pragma nounroll\n", "\n"),
        ("#pragma clang loop unroll(full)\n", "\n"),
        ('_Pragma("unroll") ', " "),
        ('_Pragma ( "unroll 8" ) ', " "),
        ('#define UNROLL _Pragma("unroll")\nUNROLL ', "#define UNROLL \nUNROLL "),
        ('_Pragma("once") ', '_Pragma("once") '),
    ],
)
def test_loops_are_not_unrolled(asked: str, left: str) -> None:
    assert plain_loops(f"{asked}for (;;) f();") == f'{left}_Pragma("unroll 1") for (;;) f();'


def compiled(kernel: Candidate, changes: list[SwitchedChange]) -> CompiledChanges | None:
    async def run() -> CompiledChanges | None:
        pool = CompilePool(1, module=CLANG)
        try:
            task = bug_task("layernorm")
            compiler = CandidateCompiler(task, None, pool)
            found = ChangeCompiler(kernel, "rows", compiler, limits_of_arch("sm_90"))
            return await found.together(changes)
        finally:
            await pool.close()

    return asyncio.run(run())


KERNEL = [
    ('grid: ["ceil_div(N, 4)", B]', 'grid: ["ceil_div(N, 4)"]'),
    ("args: [x, weight, out, N, C, scale]", "args: [x, weight, out, N, C, eps]"),
]


def test_changes_that_do_not_compile_are_left_out_and_all_others_stay() -> None:
    kernel = candidate(*KERNEL)
    code = code_of(kernel)
    good = [
        switched(code, change(kernel, "0.0f", "1.0f")),
        switched(code, change(kernel, "lane == 0", "lane != 0")),
    ]
    bad = switched(code, change(kernel, "(top, value)", "(top, unknown)"))
    assert bad is not None and None not in good
    found = compiled(kernel, [good[0], bad, good[1]])
    assert found is not None
    assert list(found.changes) == [good[0].change, good[1].change]
    assert [case.plan.launches[0].kernel for case in found.cases] == [SELECT, SELECT]
    assert [case.plan.launches[0].args[0].scalar for case in found.cases] == [1, 3]


@pytest.mark.parametrize(
    "macro",
    [
        '#define UNROLL _Pragma("unroll")\n',
        # what it asks for stands nowhere as it is
        "#define REQUEST(words) _Pragma(#words)\n#define UNROLL REQUEST(unroll)\n",
    ],
)
def test_a_macro_that_asks_to_unroll_keeps_no_change_from_being_tried(macro: str) -> None:
    kernel = candidate(
        *KERNEL,
        ("__device__ float warp_sum", f"{macro}__device__ float warp_sum"),
        ("for (int step", "UNROLL for (int step"),
        ("for (int c", "UNROLL for (int c"),
    )
    found = compiled(kernel, switched_changes(kernel)[:24])
    assert found is not None and len(found.changes) > 12


@pytest.mark.timeout(120)
def test_most_changes_of_a_kernel_compile_together() -> None:
    kernel = candidate(*KERNEL)
    changes = switched_changes(kernel)[:120]
    found = compiled(kernel, changes)
    assert found is not None
    assert len(found.changes) > 0.8 * len(changes)


def test_what_stands_behind_an_if_without_braces_stays_behind_it() -> None:
    kernel = candidate(("    if (lane == 0) parts", "    if (lane == 7) return;\n    parts"))
    code = code_of(kernel)
    old = "return;\n    parts[warp][0] = sum;"
    exchanged = change(kernel, old, "parts[warp][0] = sum; return;", "statements exchanged")
    assert switched(code, exchanged) is None
