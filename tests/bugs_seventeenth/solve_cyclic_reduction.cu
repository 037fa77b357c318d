/* evoengine
name: solve_cyclic_reduction
precision: fp32
summary: a block has a system, a thread an equation; parallel cyclic reduction, equations in two buffers of shared memory by turns
launches:
  - kernel: solve
    grid: [B]
    block: ["round_up(N, 32)"]
    args: [below, middle, above, right, out, N]
*/
// An equation: what multiplies the unknown `distance` before it, its own, the one `distance` behind it, and the right side.
struct alignas(16) Equation {
    float before, own, behind, right;
};

__global__ void __launch_bounds__(512)
solve(const float* __restrict__ below, const float* __restrict__ middle, const float* __restrict__ above,
      const float* __restrict__ right, float* __restrict__ out, int N) {
    __shared__ Equation equations[2][512];
    const int i = threadIdx.x;
    const size_t at = size_t(blockIdx.x) * N + i;
    const Equation none = {0.0f, 1.0f, 0.0f, 0.0f};
    Equation mine = none;
    if (i < N) mine = {i > 0 ? below[at] : 0.0f, middle[at], i + 1 < N ? above[at] : 0.0f, right[at]};

    int turn = 0;
    for (int distance = 1; distance < N; distance *= 2) {
        equations[turn][i] = mine;
        __syncthreads();
        const Equation upper = i >= distance ? equations[turn][i - distance] : none;
        const Equation lower = i + distance < N ? equations[turn][i + distance] : none;
        const float up = -mine.before / upper.own, down = -mine.behind / lower.own;
        mine.own += up * upper.behind + down * lower.before;
        mine.right += up * upper.right + down * lower.right;
        mine.before = up * upper.before;
        mine.behind = down * lower.behind;
        turn = 1 - turn;
    }
    if (i < N) out[at] = mine.right / mine.own;
}
