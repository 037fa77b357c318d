/* evoengine
name: top_k_lists_in_lanes
precision: fp32
summary: a warp a row; every lane keeps the eight largest of its numbers in order, then eight rounds of a maximum over the lanes take them out
launches:
  - kernel: largest
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [x, out, N, C]
*/
__global__ void __launch_bounds__(128) largest(const float* __restrict__ x, float* __restrict__ out, int N, int C) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    float kept[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) kept[i] = -3.4e38f;
    for (int at = lane; at < C; at += 32) {
        float v = x[size_t(row) * C + at];
        if (v > kept[7]) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float larger = fmaxf(kept[i], v);
                v = fminf(kept[i], v);
                kept[i] = larger;
            }
        }
    }
    for (int round = 0; round < 8; ++round) {
        float top = kept[0];
#pragma unroll
        for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
        const int owner = __ffs(__ballot_sync(~0u, kept[0] == top)) - 1;
        if (lane == owner) {
            out[size_t(row) * 8 + round] = top;
#pragma unroll
            for (int i = 0; i < 7; ++i) kept[i] = kept[i + 1];
            kept[7] = -3.4e38f;
        }
    }
}
