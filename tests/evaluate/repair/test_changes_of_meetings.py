"""Where threads meet or share: barriers, shuffles, roots and functions around sums."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from tests.evaluate.repair.parts_kernel import repairing
from tests.evaluate.repair.tiles_kernel import assert_said, kernel

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    ("barrier missing, before a count",
     "sums[lane] = total; if (threadIdx.x == 0) end = atomicAdd(counter, 1u);",
     "sums[lane] = total; __syncthreads(); if (threadIdx.x == 0) end = atomicAdd(counter, 1u);",
     "a barrier is missing"),
    ("barrier missing, before another use of memory",
     "f(right[lane]); half* weights = reinterpret_cast<half*>(right); weights[lane] = 0;",
     "f(right[lane]); __syncwarp(); half* weights = reinterpret_cast<half*>(right); weights[lane] = 0;",
     "a barrier is missing"),
    ("barrier for all", "while (begin < end) { f(begin); if (begin + 1 < end) __syncthreads(); }",
     "while (begin < end) { f(begin); __syncthreads(); }", "where its condition does not hold"),
    ("barrier before the wait", "copy(); __syncthreads(); wait<0>(); f(0);",
     "copy(); wait<0>(); __syncthreads(); f(0);", "only behind the barrier"),
    ("lanes of a shared loop not joined",
     "float own = 0.0f; for (int d = lane % 4; d < K; d += 4) own += f(d); g(own);",
     "float own = 0.0f; for (int d = lane % 4; d < K; d += 4) own += f(d);"
     " own += __shfl_xor_sync(~0u, own, 1); own += __shfl_xor_sync(~0u, own, 2); g(own);",
     "not reduced over the lanes"),
    ("difference the wrong way round", "f(expf(total - top));", "f(expf(top - total));", "the wrong way round"),
    ("lanes without a part", "__shared__ float parts[WARPS]; f(lane_sum(parts[lane]));",
     "__shared__ float parts[WARPS]; f(lane_sum(lane < WARPS ? parts[lane] : 0.0f));", "fewer parts than lanes"),
    ("lanes without a part", "__shared__ float parts[32]; f(lane_sum(parts[lane]));",
     "__shared__ float parts[32]; f(lane_sum(lane < WARPS ? parts[lane] : 0.0f));", "fewer parts than lanes"),
    ("thread of the second group", "if (threadIdx.x >= 64) { const int t = threadIdx.x; f(t); }",
     "if (threadIdx.x >= 64) { const int t = threadIdx.x - 64; f(t); }", "from their first one"),
    ("term inside of a root", "f(top / sqrtf(total + scale));", "f(top / (sqrtf(total) + scale));",
     "the wrong side of a root"),
    ("term inside of a root", "f(top / (sqrtf(total) + scale));", "f(top / sqrtf(total + scale));",
     "the wrong side of a root"),
    ("term inside of a quotient", "f(sqrtf((total + scale) / top));", "f(sqrtf((total / top + scale)));",
     "before the division"),
    ("bytes of what is left", "f(min(16, N - lane));", "f(min(16, 4 * (N - lane)));", "in elements where bytes"),
    ("terms behind a function", "f(lane_sum(total) + top, lane_sum(top) + scale);",
     "f(lane_sum(total + top), lane_sum(top + scale));", "behind a function"),
    ("columns in turns or together", "f(right[quad * 4 + warp]); f(right[lane + 16 * warp]);",
     "f(right[quad + 16 * warp]); f(right[lane + 16 * warp]);", "every 32nd one"),
    ("quotient as other indices have it", "f(sum[quad / 2], mark[quad / 2], sum[quad % 2]);",
     "f(sum[quad / 2], mark[quad / 2], sum[quad / 2]);", "as in other indices"),
    ("number of weights for their sum", "const float w = expf(top); total += 1.0f; f(w);",
     "const float w = expf(top); total += w; f(w);", "the sum of their weights"),
    ("end behind the last row", "const int from = blockIdx.y * BM; end = min(K, from); f(from);",
     "const int from = blockIdx.y * BM; end = min(K, from + BM); f(from);", "not behind its last one"),
    ("too many copies pending", 'asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");',
     'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");', "the wait is too weak"),
    ("function of a family", "total = f(__nv_fp8_e5m2(total));", "total = f(__nv_fp8_e4m3(total));", ""),
]  # fmt: skip
# kind of change, statements in which nothing says that there is such a mistake
RIGHT = [
    ("barrier missing, before a count",
     "sums[lane] = total; __syncthreads(); if (threadIdx.x == 0) end = atomicAdd(counter, 1u);"),
    ("barrier before the wait", "copy(); wait<0>(); __syncthreads(); f(0);"),
    ("lanes of a shared loop not joined",
     "float own = 0.0f; for (int d = lane % 2; d < K; d += 2) own += f(d);"
     " own += __shfl_xor_sync(~0u, own, 1);"),
    ("thread of the second group", "const int t = threadIdx.x; f(t);"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_a_change_of_its_kind_mends_the_mistake(
    kind: str, wrong: str, right: str, said: str
) -> None:
    assert_said(kernel(wrong), repairing(kernel(wrong), kernel(right), kind), said)


@pytest.mark.parametrize(("kind", "body"), RIGHT)
def test_a_kernel_without_such_a_place_has_no_change_of_the_kind(kind: str, body: str) -> None:
    assert kind not in {change.kind for change, _ in ordered_changes(kernel(body))}


def test_a_barrier_between_two_calls_of_a_function_is_put_back() -> None:
    barrier = "    __syncthreads();\n    if (threadIdx.x % 32 == 0) parts"
    wrong = kernel("f(0);", barrier, "    if (threadIdx.x % 32 == 0) parts")
    changes = repairing(wrong, kernel(), "barrier missing, between calls")
    assert_said(wrong, changes, "a barrier is missing")
