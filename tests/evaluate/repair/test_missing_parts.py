"""Parts that an expression lacks are known, and said in plain words: what its like beside it has,
strides of loops, sums in arrays, guards of scans, coordinates of registers.
"""

from __future__ import annotations

import pytest

from benchmarks.written_alike import form
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import header_end, ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.source_change import SourceChange

KERNEL = """/* evoengine
name: parts
precision: fp32
launches:
  - kernel: parts<PAD>
    grid: [N, B]
    block: [32]
    args: [x, out, N, C, scale]
*/
constexpr int WARPS = 4, STRIDE = 2;
struct Pair { float sum, top; };
template <int PAD, bool COUNT>
__global__ void parts(const float* x, float* out, int N, int C, float scale) {
    __shared__ float tile[64 * 8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = blockIdx.x, group = lane / 4;
    float mean = 0.0f, kept[4], other = 0.0f, factor = 1.0f;
    BODY
}
"""
# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    ("part missing, beside its like in the statement",
     "int left = row * STRIDE, above = lane * STRIDE - PAD; f(left, above);",
     "int left = row * STRIDE - PAD, above = lane * STRIDE - PAD; f(left, above);",
     "PAD is missing, it is not subtracted, so that places are shifted"),
    ("bound of a term missing",
     "int begin_y = row, begin_x = lane; f(C - begin_y); f(N - max(begin_x, 0));",
     "int begin_y = row, begin_x = lane; f(C - max(begin_y, 0)); f(N - max(begin_x, 0));",
     "a limit is missing: what lies before the first one"),
    ("part missing, beside its like in the statement",
     "Pair a, b; mean = a.sum + b.sum * expf(b.top - factor);",
     "Pair a, b; mean = a.sum * expf(a.top - factor) + b.sum * expf(b.top - factor);",
     "it is not rescaled to the new or common maximum"),
    ("factor missing, beside its like",
     "mean += factor * tile[lane]; other += kept[0];",
     "mean += factor * tile[lane]; other += factor * (kept[0]);",
     "the factor factor (scale) is missing"),
    ("factor missing, of a like sum",
     "mean = tile[lane / 4 * STRIDE + row]; other = x[warp + row];",
     "mean = tile[lane / 4 * STRIDE + row]; other = x[warp * STRIDE + row];",
     "the factor STRIDE (a stride or pitch) is missing"),
    ("step of a loop times a size",
     "for (int i = warp * 32; i < N; i += 32) f(i);",
     "for (int i = warp * 32; i < N; i += 32 * WARPS) f(i);",
     "counted several times (twice or more)"),
    ("quotient for remainder", "mean *= kept[lane % 2];", "mean *= kept[lane / 2];",
     "rows and columns (registers or elements) are mixed up"),
    ("guard of a scan missing",
     "for (int step = 1; step < 32; step *= 2) { const float before = __shfl_up_sync(~0u, mean, step);"
     " mean += before; }",
     "for (int step = 1; step < 32; step *= 2) { const float before = __shfl_up_sync(~0u, mean, step);"
     " if (lane >= step) mean += before; }",
     "a condition is missing in a step of a scan"),
    ("coordinate of a register missing",
     'for (int e = 0; e < 4; ++e) { const int own = row; f("mma", own <= e); }',
     'for (int e = 0; e < 4; ++e) { const int own = row + e / 2 * 8; f("mma", own <= e); }',
     "half of a fragment's rows"),
    ("index of the same statement", "kept[row] = tile[lane] * x[row];", "kept[row] = tile[lane] * x[lane];",
     "the index of another operand or row is used"),
    ("indices exchanged, of two arrays", "f(tile[lane], x[row]);", "f(tile[row], x[lane]);",
     "two indices are exchanged"),
    ("name for a coordinate", "mean = tile[lane % 8];", "mean = tile[group];", "a lane's place"),
    ("one more, of a factor", "f(row * C, lane);", "f((row + 1) * C, lane);", "the same one is taken again"),
    ("bound of a term missing", "f(C - row - lane);", "f(C - max(row, 0) - lane);", "a limit is missing"),
    ("clamp of a code missing", "int code = row; out[row] = (signed char)code;",
     "int code = max(-128, min(127, row)); out[row] = (signed char)code;", "not saturated"),
    ("flag negated", "if (COUNT) mean = 1.0f;", "if (!(COUNT)) mean = 1.0f;",
     "the flag COUNT is read the wrong way round"),
    ("assignment", "Pair pairs[2]; for (int e = 0; e < 2; ++e) pairs[e].sum = kept[e];",
     "Pair pairs[2]; for (int e = 0; e < 2; ++e) pairs[e].sum += kept[e];", "is overwritten, not added up"),
    ("float zero to infinity", "mean = row < N ? scale : 0.0f; other = -1e30f;",
     "mean = row < N ? scale : -1e30f; other = -1e30f;", "in place of minus infinity"),
    (
        "factor missing, of a running value",
        "const float shrink = 2.0f; mean = mean + kept[0];",
        "const float shrink = 2.0f; mean = mean * shrink + kept[0];",
        "is not rescaled",
    ),
    (
        "factor missing, of a like call",
        "mean = expf(other); other = expf((mean - other) * scale);",
        "mean = expf((other) * scale); other = expf((mean - other) * scale);",
        "as in other calls",
    ),
    (
        "factor missing, of a block",
        "const int first = blockIdx.x + warp;",
        "const int first = blockIdx.x * WARPS + warp;",
        "so that blocks overlap",
    ),
    (
        "summand missing, compared",
        "if (row < N) mean = 1.0f;",
        "if (row + STRIDE < N) mean = 1.0f;",
        "is missing in a comparison",
    ),
    ("one off, in an argument", "f(row + N);", "f(row + N - 1);", "off by one"),
    (
        "name for its beginning",
        "const int first = row * C + warp; f(row * C + lane);",
        "const int first = row * C + warp; f(first + lane);",
        "a part of the place is missing",
    ),
    (
        "condition of a lane missing",
        "mean = tile[lane];",
        "mean = (lane < WARPS ? tile[lane] : 0.0f);",
        "lanes that have no result are counted",
    ),
    (
        "registers of the other half",
        "f(kept[0], kept[1]);",
        "f(kept[2], kept[3]);",
        "so that a half repeats",
    ),
    (
        "coordinate of a register missing",
        'for (int i = 0; i < 8; ++i) { const int h = i % 2; int own = row; f("mma", own, h); }',
        "for (int i = 0; i < 8; ++i) { const int h = i % 2; int own = row + h * 8;"
        ' f("mma", own, h); }',
        "half of a fragment's rows",
    ),
    ("guard missing", "tile[row] = mean;", "if (lane == 0) tile[row] = mean;", "every thread does"),
]  # fmt: skip


def kernel(body: str) -> Candidate:
    return kernel_file.parse(KERNEL.replace("BODY", body))


def repairing(wrong: Candidate, right: Candidate) -> list[SourceChange]:
    wanted = form(right.source[header_end(right) :])
    changes = (change for change, _ in ordered_changes(wrong))
    return [it for it in changes if form(it.applied(wrong.source)[header_end(wrong) :]) == wanted]


@pytest.mark.parametrize(
    ("kind", "wrong", "right", "said"), MISTAKES, ids=[it[0] for it in MISTAKES]
)
def test_the_change_is_known_and_told(kind: str, wrong: str, right: str, said: str) -> None:
    changes = [it for it in repairing(kernel(wrong), kernel(right)) if it.kind == kind]
    assert changes
    told = finding(kernel(wrong), FoundRepairs(changes=changes[:1]))
    assert told is not None and said in told.sentence


def test_an_array_of_sums_begins_anew_in_each_round() -> None:
    wrong = kernel(
        "float sums[4] = {}; for (int i = 0; i < N; ++i) { sums[0] += x[i]; out[i] = sums[0]; }"
    )
    kinds = [it for it, _ in ordered_changes(wrong) if it.kind == "reset missing, of an array"]
    told = finding(wrong, FoundRepairs(changes=kinds[:1]))
    assert told is not None and "is not set back to zero in each round of a loop" in told.sentence


def test_a_factor_of_an_argument_of_the_plan_is_left_out() -> None:
    wrong = kernel_file.parse(
        KERNEL.replace("BODY", "").replace("C, scale]", "C, scale * scale * 1.44]")
    )
    changes = [it for it, _ in ordered_changes(wrong) if it.new == "scale * 1.44"]
    told = finding(wrong, FoundRepairs(changes=changes[:1]))
    assert told is not None and "a factor is applied twice" in told.sentence


def test_values_that_are_given_and_worked_out_are_taken_from_the_launch() -> None:
    """Where a member of a structure has the name of one of them, too."""
    given = (
        KERNEL.replace(
            "float scale)", "float scale, float less_scale, float rate, float less_rate)"
        )
        .replace("C, scale]", "C, scale, scale, scale, scale]")
        .replace("float sum, top;", "float sum, top, less_rate; float got() { return less_rate; }")
    )
    wrong = kernel_file.parse(given.replace("BODY", "f(1.0f - rate, 1.0f - scale);"))
    right = kernel_file.parse(given.replace("BODY", "f(less_rate, less_scale);"))
    changes = repairing(wrong, right)
    assert [it.kind for it in changes] == ["value that is given, worked out"]
    told = finding(wrong, FoundRepairs(changes=changes))
    assert told is not None and "is computed in single precision in the kernel" in told.sentence
