"""Mistakes of places: strides, halves, what is exchanged, what blocks share, values of the plan."""

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
name: places
precision: fp32
launches:
  - kernel: places
    grid: [N, B]
    block: [32]
    args:
      - x
      - out
      - {value: VALUE, dtype: float32}
*/
__global__ void places(const float* x, const int* table, float* out, int N, int C, bool causal) {
    __shared__ float tile[64 * 8];
    const int lane = threadIdx.x % 32, row = blockIdx.x, base = row * C;
    float mean = 0.0f, kept[4];
    BODY
}
"""
# kind of change, the wrong statements, the right ones
MISTAKES = [
    ("tiles of a fragment exchanged",
     "f((lane % 8 + lane / 16 * 8) * 72 + lane / 8 % 2 * 8);",
     "f((lane % 16) * 72 + lane / 16 * 8);"),
    ("tiles of a fragment exchanged",
     "f((lane % 16) * 72 + lane / 16 * 8);",
     "f((lane % 8 + lane / 16 * 8) * 72 + lane / 8 % 2 * 8);"),
    ("row of the block missing",
     "keys = x + blockIdx.y * N; values = x + lane * C;",
     "keys = x + blockIdx.y * N; values = x + (blockIdx.y * N + lane) * C;"),
    ("offset of another pointer",
     "f(x + lane * N + row * 4); f(out + lane);",
     "f(x + lane * N + row * 4); f(out + lane * N + row * 4);"),
    ("layout of two", "int i = base + 2 * lane, j = i + 1;", "int i = base + lane, j = i + C;"),
    ("layout of two", "int i = base + lane, j = i + C;", "int i = base + 2 * lane, j = i + 1;"),
    ("end of a loop", "for (int c = 0; c <= row; ++c) f(c);", "for (int c = 0; c < N; ++c) f(c);"),
    ("same place twice",
     "f(tile[lane]); f(tile[lane]); f(tile[row + 32]);",
     "f(tile[lane]); f(tile[lane + 32]); f(tile[row + 32]);"),
    ("stride of the other one", "tile[lane / 4 * 2 + row] = 0;", "tile[lane / 4 + row * 2] = 0;"),
    ("index transposed", "mean = x[row * C + lane];", "mean = x[lane * N + row];"),
    ("row of an index missing, of a number",
     "mean = x[lane]; f(row * 4);",
     "mean = x[lane + row * 4]; f(row * 4);"),
    ("exchanged with the next statement",
     "kept[lane] = tile[lane + 8]; kept[row] = tile[lane + 8 * row];",
     "kept[lane] = tile[lane + 8 * row]; kept[row] = tile[lane + 8];"),
    ("exchanged with the next statement",
     "f(kept[0], row, tile[0]); f(kept[1], row, tile[1]);",
     "f(kept[0], row, tile[1]); f(kept[1], row, tile[0]);"),
    ("coordinates exchanged",
     "kept[lane % 2] = tile[lane % 4 / 2 * 2] + tile[lane % 2];",
     "kept[lane % 4 / 2] = tile[lane % 2 * 2] + tile[lane % 4 / 2];"),
    ("indices exchanged", "mean = x[2 * row] * C - x[lane + 1] * N;",
     "mean = x[lane + 1] * C - x[2 * row] * N;"),
    ("case of a mask missing", "if (row >= N) mean = 1;", "if (row >= N || (causal && row > lane)) mean = 1;"),
    ("bound of a condition missing", "if (row < C) mean = 1;", "if (row < C && row < N) mean = 1;"),
    ("square of it missing", "mean = fabsf(mean);", "mean = mean * mean;"),
    ("table that is read nowhere", "f(row * C);", "f(table[row] * C);"),
    ("counter not set back",
     "if (atomicAdd(&done[row], 1) == C - 1) { f(row); }",
     "if (atomicAdd(&done[row], 1) == C - 1) { f(row); if (threadIdx.x == 0) done[row] = 0; }"),
    ("counter not set back",
     "if (atomicAdd(&done[row], 1) == C - 1) f(row);",
     "if (atomicInc(&done[row], C - 1) == C - 1) f(row);"),
    ("atomic addition missing", "out[row] += mean;", "atomicAdd(&out[row], mean);"),
    ("too many copies pending",
     'asm volatile("cp.async.wait_group 2;" ::: "memory");',
     'asm volatile("cp.async.wait_group 0;" ::: "memory");'),
    ("two operations too many", "f(x[min(max(lane - 1, 0), C)]);", "f(x[lane - 1]);"),
    ("name for an element, of the statement before", "out[row] = x[lane];", "out[row] = mean;"),
    ("name for an element, in a whole statement",
     "mean += fmaf(tile[row], tile[row], mean);",
     "mean += fmaf(mean, mean, mean);"),
    ("name for an offset", "f(x[row * C + 2 * lane]);", "f(x[base + 2 * lane]);"),
    ("groups for turns", "f(row % N);", "f(row / (C / N));"),
    ("groups for turns", "f(row / (C / N));", "f(row % N);"),
    ("summand missing in a factor", "mean = x[row] * 2.0f;", "mean = (x[row] - mean) * 2.0f;"),
    ("factor missing, float", "mean += __ldcg(x + row);", "mean += __ldcg(x + row) * mean;"),
    ("row of an index missing, of a number",
     "for (int j = 0; j < 5; ++j) f(x[j]);",
     "for (int j = 0; j < 5; ++j) f(x[j + lane * 5]);"),
    ("comparison without one", "if (lane == row - 1) f(row);", "if (lane < row) f(row);"),
    ("rounding missing", "row = int(mean * 3.0f);", "row = __float2int_rn(mean * 3.0f);"),
    ("rounding missing", "row = (int)(mean * 3.0f);", "row = __float2int_rn(mean * 3.0f);"),
    ("rounding missing", "row = (int)mean;", "row = __float2int_rn(mean);"),
    ("rounding missing", "row = static_cast<int>(mean);", "row = __float2int_rn(mean);"),
    ("byte not cut", "row |= unsigned(lane) << (8 * C);", "row |= ((unsigned(lane)) & 0xffu) << (8 * C);"),
    ("known constant", "mean *= 1.4247f;", "mean *= 1.4426950408889634f;"),
    ("reciprocal for a float", "const float inverse = 1.0f;", "const float inverse = 1.0f / mean;"),
    ("square of a factor missing", "mean = 0.5f * x[row];", "mean = 0.5f * x[row] * x[row];"),
    ("whole vectors only",
     "if (lane + 4 <= C) f(reinterpret_cast<const float4*>(x + row * N + lane));",
     "if (N % 4 == 0 && lane + 4 <= C) f(reinterpret_cast<const float4*>(x + row * N + lane));"),
    ("quotient rounded down", "int share = (N - row) / 4;", "int share = (N - row + 3) / 4;"),
]  # fmt: skip


def kernel(body: str, value: str = "1 / rate") -> Candidate:
    return kernel_file.parse(KERNEL.replace("BODY", body).replace("VALUE", value))


def repairing(wrong: Candidate, right: Candidate) -> list[SourceChange]:
    """The changes that make one kernel of the other, but for how it is written."""
    wanted, begin = _form(right.source), header_end(wrong)
    header = begin != header_end(right) or wrong.source[:begin] != right.source[:begin]
    found = []
    for change, _ in ordered_changes(wrong):
        if header == (change.start < begin) and _form(change.applied(wrong.source)) == wanted:
            found.append(change)
    return found


def _form(source: str) -> str:
    header, end, code = source.partition("*/")
    return header + end + form(code)


@pytest.mark.parametrize(("kind", "wrong", "right"), MISTAKES)
def test_a_change_of_its_kind_mends_the_mistake(kind: str, wrong: str, right: str) -> None:
    assert kind in {change.kind for change in repairing(kernel(wrong), kernel(right))}


def test_a_value_that_the_plan_computes_is_mended() -> None:
    wrong, right = kernel("f(row);"), kernel("f(row);", "(1 / rate) ** 0.5")
    assert [change.kind for change in repairing(wrong, right)] == ["value of the plan"]


def test_neighbours_of_a_list_with_one_entry_a_line_are_exchanged() -> None:
    right = kernel("f(row);")
    wrong = kernel_file.parse(right.source.replace("- x\n      - out", "- out\n      - x"))
    assert [change.kind for change in repairing(wrong, right)] == ["args exchanged"]


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [(MISTAKES[0][1], MISTAKES[0][2], "two 8x8 tiles of a fragment are exchanged"),
     (MISTAKES[2][1], MISTAKES[2][2], "blockIdx.y is ignored: all blocks take the rows of the first"),
     (MISTAKES[7][1], MISTAKES[7][2], "the one 32 behind it never: a half of it repeats"),
     (MISTAKES[19][1], MISTAKES[19][2], "a counter is not reset")],
)  # fmt: skip
def test_the_sentence_says_what_it_means(wrong: str, right: str, said: str) -> None:
    changes = repairing(kernel(wrong), kernel(right))
    told = finding(kernel(wrong), FoundRepairs(changes=changes[:1]))
    assert told is not None
    assert said in told.sentence


def test_the_share_of_a_range_keeps_its_brackets() -> None:
    share, place = kernel("int share = (N - row) / 4;"), kernel("int place = (N + lane) / 4;")
    kinds = [{change.kind for change, _ in ordered_changes(item)} for item in (share, place)]
    assert "brackets dropped" not in kinds[0] and "brackets dropped" in kinds[1]
