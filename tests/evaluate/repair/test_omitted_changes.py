"""What is left out and nothing else shows is put back, and said."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from tests.evaluate.repair.parts_kernel import repairing
from tests.evaluate.repair.tiles_kernel import assert_said, kernel

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    (
        "begin of a part missing in a loop",
        "for (int k = 0; k < BM / 2; k += 16) { const int kk = k; f(kk); }",
        "for (int k = 0; k < BM / 2; k += 16) { const int kk = warp * (BM / 2) + k; f(kk); }",
        "every one of them goes through the first part",
    ),
    (
        "begin of a part missing in a loop, in an index",
        "for (int k = 0; k < BM; ++k) total += right[k + 1];",
        "for (int k = 0; k < BM; ++k) total += right[warp * BM + k + 1];",
        "every one of them takes what is in the first part",
    ),
    (
        "choice by a condition that nothing reads",
        'const bool inside = begin < end; asm volatile("cp" ::"r"(begin), "r"(16));',
        'const bool inside = begin < end; asm volatile("cp" ::"r"(begin), "r"((inside ? 16 : 0)));',
        "zeros must stand there",
    ),
    (
        "condition that nothing reads",
        "const bool inside = begin < end; sums[begin] = total;",
        "const bool inside = begin < end; if (inside) sums[begin] = total;",
        "a guard is missing",
    ),
    (
        "difference from another",
        "const float best = fmaxf(top, total); const float mine = exp2f(top - best);"
        " const float theirs = exp2f(total - top); f(mine, theirs);",
        "const float best = fmaxf(top, total); const float mine = exp2f(top - best);"
        " const float theirs = exp2f(total - best); f(mine, theirs);",
        "the larger one of both",
    ),
    (
        "next of a series missing",
        "float4 v = f(0); v.x *= total, v.y *= total; v.z *= total;",
        "float4 v = f(0); v.x *= total, v.y *= total; v.z *= total; v.w *= total;",
        "the last one of a series",
    ),
    (
        "next of a series missing",
        "sum[0] += total; sum[1] += total;",
        "sum[0] += total; sum[1] += total; sum[2] += total;",
        "the last one of a series",
    ),
    (
        "comparison inverted",
        "if ((lane & begin) == 0) f(total);",
        "if ((lane & begin) != 0) f(total);",
        "the condition is inverted, == is used in place of !=",
    ),
    (
        "name of another begin, int",
        "const int rest = begin + warp * 32; f(sums[end - rest]);",
        "const int rest = begin + warp * 32; f(sums[end - begin]);",
        "rest is taken in place of begin: one of them is the other and something more",
    ),
    (
        "end of a halving loop",
        "for (int step = 16; step > 1; step /= 2) total += __shfl_xor_sync(~0u, total, step);",
        "for (int step = 16; step >= 1; step /= 2) total += __shfl_xor_sync(~0u, total, step);",
        "ends one step too early",
    ),
    (
        "step of the loop, for what is ahead",
        "for (int row = begin; row < end; row += STAGES) load(sums, row + WARPS, 0);",
        "for (int row = begin; row < end; row += STAGES) load(sums, row + STAGES, 0);",
        "the step (stride) of the loop is meant",
    ),
    (
        "reset missing, of a vector",
        "float4 run = make_float4(0.f, 0.f, 0.f, 0.f); if (begin < end) put(sums, run); g(run);",
        "float4 run = make_float4(0.f, 0.f, 0.f, 0.f); if (begin < end) put(sums, run);"
        " run = make_float4(0.f, 0.f, 0.f, 0.f); g(run);",
        "not set back to zero",
    ),
    (
        "thread for the element of a loop",
        "for (int i = threadIdx.x; i < K; i += 128) f(left[0][threadIdx.x] * right[threadIdx.x]);",
        "for (int i = threadIdx.x; i < K; i += 128) f(left[0][i] * right[i]);",
        "the number (column, chunk) of the loop",
    ),
    (
        "one less, counted backwards",
        "const int tile = N - begin / 2; f(tile);",
        "const int tile = N - begin / 2 - 1; f(tile);",
        "counted backwards from an end",
    ),
    (
        "last number of a loop for each",
        "for (int e = 0; e < 8; ++e) f(begin + 7 < N);",
        "for (int e = 0; e < 8; ++e) f(begin + e < N);",
        "the last element is asked for in place of each one",
    ),
    (
        "lane of the loop in a shuffle",
        "for (int r = 0; r < 4; ++r) f(__shfl_sync(~0u, total, 0));",
        "for (int r = 0; r < 4; ++r) f(__shfl_sync(~0u, total, r));",
        "one fixed lane",
    ),
    (
        "rest of a vector not copied",
        "const int left = N - begin; f(left >= 4 ? 16 : 0);",
        "const int left = N - begin; f(left >= 4 ? 16"
        " : (left > 0 ? 4 * static_cast<int>(left) : 0));",
        "behind the last whole vector",
    ),
    (
        "rest of a vector not copied",
        "f(begin + 8 <= N ? 16 : 0);",
        "f(begin + 8 <= N ? 16 : ((N - (begin)) > 0 ? 2 * static_cast<int>((N - (begin))) : 0));",
        "behind the last whole vector",
    ),
    (
        "distance of the means missing",
        "const float apart = other.mean - mean; const float share = other.n / all; m2 += other.m2;",
        "const float apart = other.mean - mean; const float share = other.n / all;"
        " m2 += other.m2 + apart * apart * (all - other.n) * share;",
        "the distance between the two means",
    ),
    (
        "distance of the means missing",
        "const float delta = b.mean - a.mean;"
        " f(n, a.mean + delta * b.n / n, a.squares + b.squares);",
        "const float delta = b.mean - a.mean;"
        " f(n, a.mean + delta * b.n / n, a.squares + b.squares + delta * delta * (n - b.n)"
        " * b.n / n);",
        "the distance between the two means",
    ),
]
# kind of change, statements that have no such place
RIGHT = [
    ("begin of a part missing in a loop", "for (int k = 0; k < BM; ++k) f(k);"),
    ("choice by a condition that nothing reads", "const bool inside = begin < end; f(inside, 16);"),
    (
        "condition that nothing reads",
        "const bool inside = begin < end; f(inside); sums[0] = total;",
    ),
    (
        "next of a series missing",
        "sum[0] += total; sum[1] += total; sum[2] += total; sum[3] += total;",
    ),
    ("next of a series missing", "float4 v = f(0); v.z = total; v.w = total;"),
    ("next of a series missing", "float4 v = f(0); v.x = total; v.y = top;"),
    ("lane of the loop in a shuffle", "f(__shfl_sync(~0u, total, 0));"),
    ("last number of a loop for each", "for (int e = 0; e < 8; ++e) f(begin + 8 < N, 7);"),
    ("rest of a vector not copied", "f(begin >= 4 ? 16 : 8);"),
    ("distance of the means missing", "const float apart = a.mean - b.max; m2 += b.m2 / all;"),
    ("difference from another", "f(exp2f(top - total)); g(exp2f(total - top));"),
]
SCALED = "__device__ void put(float* to, int pitch, float factor = 1.0f) { to[pitch] *= factor; }"
BEGIN = "__device__ float lane_sum"


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_a_change_of_its_kind_mends_the_mistake(
    kind: str, wrong: str, right: str, said: str
) -> None:
    assert_said(kernel(wrong), repairing(kernel(wrong), kernel(right), kind), said)


@pytest.mark.parametrize(
    ("wrong", "right", "kind", "said"),
    [
        (", total", "", "argument too many, which has a default", "once too often"),
        ("", ", total", "argument missing, which has a default", "is not applied"),
    ],
)
def test_an_argument_that_has_a_default_is_given_or_left_out(
    wrong: str, right: str, kind: str, said: str
) -> None:
    wrong_one, right_one = (
        kernel(f"put(sums, begin{given});", BEGIN, f"{SCALED}\n{BEGIN}") for given in (wrong, right)
    )
    assert_said(wrong_one, repairing(wrong_one, right_one, kind), said)


@pytest.mark.parametrize(("kind", "body"), RIGHT)
def test_where_nothing_is_left_out_there_is_no_change_of_the_kind(kind: str, body: str) -> None:
    assert kind not in {change.kind for change, _ in ordered_changes(kernel(body))}


def test_two_sizes_that_are_exchanged_in_a_call_are_likelier_than_other_arguments() -> None:
    wrong, right = kernel("f(sums, K, N, begin, end);"), kernel("f(sums, N, K, begin, end);")
    (sizes,) = repairing(wrong, right)
    (others,) = repairing(wrong, kernel("f(sums, K, begin, N, end);"))
    rated = dict(ordered_changes(wrong))
    assert rated[sizes] > 3 * rated[others]
