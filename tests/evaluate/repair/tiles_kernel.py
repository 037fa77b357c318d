"""A kernel of tiles, stages and shares, and helpers to look up the changes that mend it."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.source_change import SourceChange

KERNEL = """/* evoengine
name: tiles
precision: fp16
let:
  COLUMNS: round_up(N, 64)
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: tiles
    grid: ["ceil_div(N, 64)", "ceil_div(M, 8 * WARPS)"]
    block: [128]
    shared: 3 * 4096
    args: [a, b, table, sums, counter, M, N, K, scale]
*/
constexpr int BM = 64, BN = 32, WARPS = 4, STAGES = 3;
constexpr int A_PITCH = BM + 8, B_PITCH = BN + 8, OWN = BM / 32;
constexpr int WM = BM / 2, WN = BN / 4;
__device__ int place(int row, int chunk) { return row * 64 + ((chunk ^ (row % 8)) * 8); }
__device__ int a_at(int row, int column) { return row * A_PITCH + column % 8; }
__device__ int b_at(int row, int column) { return row * B_PITCH + column % 8; }
__device__ void load(float* to, int row, int column) { to[row] = column; }
__device__ float lane_sum(float x) {
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}
__device__ float block_sum(float x) {
    __shared__ float parts[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    return parts[0];
}
__global__ void tiles(const half* a, const half* b, const int* table, float* sums, unsigned* counter, int M, int N,
                      int K, float scale) {
    extern __shared__ __align__(16) float memory[];
    __shared__ __align__(16) float left[2][BN * A_PITCH];
    __shared__ float right[BM * B_PITCH], square[32][33], totals[BM], kept[BM];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane % 4;
    const int first = blockIdx.y * 8 * WARPS, column = blockIdx.x * 64;
    float top = -INFINITY, total = 0.0f, sum[4] = {}, mark[2] = {};
    int begin = 0, end = K;
    BODY
}
"""


def kernel(body: str = "f(0);", right: str = "", wrong: str = "") -> Candidate:
    """The kernel with these statements, and one text of the rest replaced."""
    source = KERNEL.replace("BODY", body)
    assert not right or source.count(right) == 1
    return kernel_file.parse(source.replace(right, wrong) if right else source)


def assert_said(wrong: Candidate, changes: list[SourceChange], said: str) -> None:
    """That there is such a change, and what is said of the first."""
    assert changes
    found = finding(wrong, FoundRepairs(changes=changes[:1]))
    assert found is not None and said in found.sentence, found
