/* evoengine
name: layernorm_rows_fill_shared
precision: fp32
summary: as many rows a block as shared memory holds, a warp for each
tunables:
  MOST_WARPS: [32, 16, 8]
let:
  ROWS: max(1, min(MOST_WARPS, MAX_SHARED_BYTES // (4 * C)))
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, ROWS)"]
    block: [WARP_SIZE, ROWS]
    shared: 4 * C * ROWS
    args: [x, weight, bias, out, N, C, eps]
*/
__device__ inline float sum_of_lanes(float v) {
    for (int mask = 16; mask; mask >>= 1) v += __shfl_xor_sync(0xffffffff, v, mask, 32);
    return v;
}

__global__ void __launch_bounds__(32 * MOST_WARPS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    extern __shared__ float rows[];
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= N) return;   // a warp at a time, and no barrier below covers more than a warp
    float* held = rows + threadIdx.y * C;
    const float* from = x + (size_t)row * C;
    float s = 0;
    for (int i = threadIdx.x; i < C; i += 32) {
        const float v = from[i];
        held[i] = v;
        s += v;
    }
    const float mean = sum_of_lanes(s) / C;
    float first = 0;
    for (int i = threadIdx.x; i < C; i += 32) {   // every lane reads its own elements: nothing to wait for
        held[i] -= mean;
        first += held[i];
    }
    const float rest = sum_of_lanes(first) / C;
    float second = 0;
    for (int i = threadIdx.x; i < C; i += 32) second += (held[i] - rest) * (held[i] - rest);
    const float inverse = 1.f / sqrtf(sum_of_lanes(second) / C + eps);
    for (int i = threadIdx.x; i < C; i += 32) out[(size_t)row * C + i] = (held[i] - rest) * inverse * weight[i] + bias[i];
}
