"""Mistakes of whole statements: one of the changes mends each, and its sentence says what was wrong."""

from __future__ import annotations

import re

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import kernel_code, ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import switched

SOURCE = """/* evoengine
name: paired_tops
precision: fp32
let:
  PITCH: round_up(C, 32)
scratch:
  rows: {dtype: float32, shape: [N, PITCH]}
launches:
  - kernel: packed
    grid: [N]
    block: [128]
    args: [x, rows, C, PITCH]
  - kernel: paired_tops
    grid: [N]
    block: [128]
    args: [rows, places, out, N, C, PITCH]
*/
constexpr int THREADS = 128;

__device__ void multiply(float* sums, unsigned a, unsigned b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+f"(sums[0]), "+f"(sums[1]) : "r"(a), "r"(b));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(b));
}

__global__ void paired_tops(const float2* rows, const int* places, float2* out, int N, int C, int pitch) {
    __shared__ float2 tops[THREADS];
    const int thread = threadIdx.x;
    const float share = 1.0f / C;
    float2 top = rows[size_t(blockIdx.x) * pitch + thread];
    int place = places[thread];
    for (int c = thread; c < C; c += THREADS) {
        const int next = places[c];
        const float2 value = rows[size_t(blockIdx.x) * pitch + place];
        top.x = fmaxf(top.x, value.x * share);
        top.y = fmaxf(top.y, value.y * share);
        place = next;
    }
    tops[thread] = top;
    __syncthreads();
    for (int i = thread; i < C; i += THREADS) out[i] = tops[i % THREADS];
}
"""
LAYOUTS = """/* evoengine
name: head_rows
precision: fp16
launches:
  - kernel: head_rows
    grid: [H, B]
    block: [128]
    args: [q, index, lengths, out, H, S, D, G]
*/
struct alignas(8) Rule { float beta1, beta2; };
constexpr int TEAMS = 4, PAD = 40;

__device__ float step(float first, float second, const Rule rule) {
    return rule.beta1 * first + rule.beta2 * second;
}

__device__ Rule joined(const Rule left, const Rule right) {
    return Rule{left.beta1 + right.beta1, right.beta2};
}

__device__ int clamped(int place, int low, int high) { return max(low, min(place, high)); }

__global__ void head_rows(const half* q, const int* index, const int* lengths, half* out, int H, int S, int D, int G) {
    __shared__ half tiles[2][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x >> 5, head = blockIdx.x / G;
    float sum[2][4] = {};
    const int chunks = (S + 31) / 32, begin = warp * chunks, last = min(S, begin + chunks);
    int now = 0;
    for (int start = begin; start < last; start += 32) {
        const int count = min(32, last - start);
        tiles[now ^ 1][lane] = q[((size_t(blockIdx.y) * H + head) * S + start) * D + lane];
        for (int k = 0; k < count; ++k) {
            const float value = __half2float(__shfl_sync(0xffffffffu, tiles[now][lane & 15], k));
            for (int e = 0; e < 4; ++e) sum[k & 1][e] = step(sum[k & 1][e], value, Rule{0.9f, 0.99f});
        }
        now ^= clamped(1, H, D);
    }
    const float peak = fmaxf(fabsf(sum[0][0]), fmaxf(fabsf(sum[1][0]), fabsf(sum[0][1])));
    const float weight = 1.0f / peak;
    const int length = lengths[head];
    const float gap = peak - sum[1][2];
    sum[1][2] += gap / length;
    sum[1][3] += gap * (peak - sum[1][2]);
    out[warp] = tiles[1][lane - now];
    Rule all{0.0f, 0.0f};
    for (int w = 0; w < TEAMS; ++w) all = joined(all, rules[w]);
    for (int mask = 1; mask < 4; mask *= 2) sum[0][0] += __shfl_xor_sync(0xffffffffu, sum[0][0], mask);
    if (D % 2 == 0 && lane + 1 < D) out[(head * S + lane) * D] = index[head * S + lane] ? all.beta1 : float(S) / max(now, 1);
    if (begin + PAD <= S) sum[1][1] = weight;
    wmma::store_matrix_sync(out, products, PAD, wmma::mem_row_major);
    for (int i = warp; i < D; i += TEAMS) out[i] = sum[0][i] + weight * sum[1][i];
    int place = D / 32 * 32;
    for (; place < D; ++place) out[place] = 0;
}
"""
ASM = '"mma.sync.aligned.m16n8k8.row.col.f32.{0}.{0}.f32 '
# what is right, what stands there in the wrong kernel, and words of the sentence
MISTAKES = {
    "division of whole numbers": (
        "1.0f / C",
        "1 / C",
        "is a division of whole numbers (integers), which cuts the fraction off",
    ),
    "value that is read ahead": (
        "        place = next;\n",
        "",
        "never takes the value next, which was read ahead",
    ),
    "one element a thread": (
        "for (int i = thread; i < C; i += THREADS) out",
        "if (const int i = thread; i < C) out",
        "those beyond the number of threads are left out, never written",
    ),
    "both members": (
        "top.x = fmaxf(top.x, value.x * share);\n        top.y = fmaxf(top.y, value.y * share);",
        "top.x = fminf(top.x, value.x * share);\n        top.y = fminf(top.y, value.y * share);",
        "the minimum is taken in place of the maximum",
    ),
    "members with names of their own": (
        "value.x * share);\n        top.y = fmaxf(top.y, value.y",
        "top.x * share);\n        top.y = fmaxf(top.y, top.y",
        "in place of",
    ),
    "types of an instruction": (
        ASM.format("f16"),
        ASM.format("bf16"),
        "takes its operands for bf16, but they are f16: their bits are read as other numbers",
    ),
    "transposition missing": (".x2.trans.", ".x2.", "untransposed (.trans is missing)"),
    "argument of another launch": (
        "out, N, C, PITCH]",
        'out, N, C, "round_up(C, 16)"]',
        'where "PITCH" is meant, as another launch is given',
    ),
}
LAYOUT_MISTAKES = {
    "axes of an index": (
        "((size_t(blockIdx.y) * H + head) * S + start) * D",
        "((size_t(blockIdx.y) * S + start) * H + head) * D",
        "two axes of the index are in the wrong order (another layout, such as rows before heads",
    ),
    "axes of an array": (
        "sum[k & 1][e] = step(sum[k & 1][e]",
        "sum[e][k & 1] = step(sum[e][k & 1]",
        "rows for columns, transposed",
    ),
    "quotient for remainder": ("blockIdx.x / G", "blockIdx.x % H", "taken where the quotient"),
    "factor of a sum": (
        "sum[0][i] + weight * sum[1][i]",
        "weight * (sum[0][i] + sum[1][i])",
        "the factor is applied to one term too many",
    ),
    "magnitudes": (
        "fmaxf(fabsf(sum[0][0]), fmaxf(fabsf(sum[1][0]), fabsf(sum[0][1])))",
        "fmaxf(sum[0][0], fmaxf(sum[1][0], sum[0][1]))",
        "fabsf is missing, it is not applied",
    ),
    "rest of a row": (
        "for (; place < D; ++place) out",
        "if (place < D) out",
        "those beyond the number of threads are left out",
    ),
    "argument that repeats": (
        "clamped(1, H, D)",
        "clamped(1, H, H)",
        "H is taken in place of D in the arguments of clamped",
    ),
    "bits": (">> 5", "& 31", "the remainder is taken for the quotient"),
    "mask": ("lane & 15", "lane & 7", "so that places repeat or are left out"),
    "rest": ("min(32, last - start)", "32", "the last, incomplete part (the tail) is read beyond"),
    "end": ("min(S, begin + chunks)", "S", "a part reaches to the end of all"),
    "step": ("i += TEAMS", "++i", "several times (twice or more)"),
    "rounds": ("k < count", "k < 32", "a fixed number of rounds"),
    "stage": ("now ^ 1", "now", "the wrong stage of a double buffer is used"),
    "sums in half": ("float sum[2]", "half sum[2]", "accumulated in half precision"),
    "running value": ("joined(all, rules[w])", "rules[w]", "is overwritten and forgotten"),
    "new value": ("gap * (peak - sum[1][2])", "gap * gap", "an old value is used"),
    "distance": ("lane - now]", "lane - 1]", "in place of"),
    "table": ("length = lengths[head]", "length = S", "is ignored, nothing reads it"),
    "same member": ("left.beta1 + right.beta1", "right.beta1", "part of the other operand is left"),
    "factors of terms": (
        "rule.beta1 * first + rule.beta2 * second",
        "rule.beta2 * first + rule.beta1 * second",
        "the factors of two terms are exchanged",
    ),
    "equal arguments": ("{0.0f, 0.0f}", "{1.0f, 1.0f}", "in place of"),
    "lanes": ("mask = 1; mask < 4", "mask = 2; mask < 8", "the shuffles reach other lanes"),
    "pairs": ("D % 2 == 0 && ", "", "where the row length is no multiple of them"),
    "row": ("index[head * S + lane]", "index[lane]", "the row (batch, head) is left out"),
    "count": ("/ max(now, 1)", "/ S", "in place of"),
    "whole tiles": ("begin + PAD <= S", "begin < S", "the last, incomplete tile is taken for a"),
    "leading dimension": (
        "products, PAD",
        "products, TEAMS",
        "the pitch is wrong: rows of a fragm",
    ),
    "member": ("rule.beta2 *", "rule.beta1 *", "beta1 is used in place of beta2"),
    "width of a shuffle": ("15], k)", "15], k, 16)", "the shuffle stays within parts of the warp"),
}


def mending(right: str, wrong: str, source: str = SOURCE) -> tuple[Candidate, list[SourceChange]]:
    """The wrong kernel, and its changes that make the right one."""
    assert source.count(right) == 1, right
    found = kernel_file.parse(source.replace(right, wrong))
    changes = [change for change, _ in ordered_changes(found)]

    def bare(text: str) -> str:
        """What may be written in either way left out."""
        return re.sub(r"[\s()]+", "", text.replace("place += 1", "++place"))

    return found, [one for one in changes if bare(one.applied(found.source)) == bare(source)]


@pytest.mark.parametrize("name", MISTAKES)
def test_one_change_mends_it_and_says_what_was_wrong(name: str) -> None:
    right, wrong, said = MISTAKES[name]
    candidate, changes = mending(right, wrong)
    assert changes
    told = finding(candidate, FoundRepairs(changes=changes[:1]))
    assert told is not None and said in told.sentence, told


@pytest.mark.parametrize("name", LAYOUT_MISTAKES)
def test_one_change_of_a_layout_mends_it_and_says_what_was_wrong(name: str) -> None:
    right, wrong, said = LAYOUT_MISTAKES[name]
    candidate, changes = mending(right, wrong, LAYOUTS)
    found = [
        told.sentence
        for change in changes
        if (told := finding(candidate, FoundRepairs(changes=[change]))) is not None
    ]
    assert any(said in sentence for sentence in found), (found, [one.kind for one in changes])


def test_a_guard_around_one_element_a_thread_becomes_a_loop() -> None:
    source = SOURCE.replace(
        "for (int i = thread; i < C; i += THREADS) out[i] = tops[i % THREADS];",
        "if (thread < C) out[thread] = tops[thread];",
    )
    kind = "loop over the rest missing"
    texts = [
        change.new
        for change, _ in ordered_changes(kernel_file.parse(source))
        if change.kind == kind
    ]
    assert (
        "for (int evo_thread = thread; evo_thread < C; evo_thread += THREADS)"
        " { const int thread = evo_thread; out[thread] = tops[thread]; }"
    ) in texts


@pytest.mark.parametrize(
    ("name", "may_be_chosen"),
    [("division of whole numbers", False), ("types of an instruction", True)],
)
def test_a_change_of_a_type_is_compiled_alone_and_one_of_asm_is_not(
    name: str, may_be_chosen: bool
) -> None:
    """An alternative that is chosen while the kernel runs is converted to the type that was there."""
    candidate, changes = mending(*MISTAKES[name][:2])
    assert (switched(kernel_code(candidate), changes[0]) is not None) is may_be_chosen


def test_two_types_of_one_product_stay_equal() -> None:
    candidate, _ = mending(ASM.format("f16"), ASM.format("bf16"))
    texts = [one.new for one, _ in ordered_changes(candidate) if "type of an instr" in one.kind]
    assert texts and not any(".f16.bf16." in text or ".bf16.f16." in text for text in texts)
