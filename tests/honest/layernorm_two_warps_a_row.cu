/* evoengine
name: layernorm_two_warps_a_row
precision: fp32
summary: several rows a block in threadIdx.y, two warps each, sums exchanged through a static table
tunables:
  ROWS: [4, 8, 2, 1]
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, ROWS)"]
    block: [64, ROWS]
    args: [x, weight, bias, out, N, C, eps]
*/
#define FULL 0xffffffffu
#define ROW_SUM(value, slot) row_sum(value, sums[slot])

__device__ __forceinline__ float row_sum(float value, float (&table)[ROWS][2]) {
    value += __shfl_down_sync(FULL, value, 16);
    value += __shfl_down_sync(FULL, value, 8);
    value += __shfl_down_sync(FULL, value, 4);
    value += __shfl_down_sync(FULL, value, 2);
    value += __shfl_down_sync(FULL, value, 1);
    if (threadIdx.x % 32 == 0) table[threadIdx.y][threadIdx.x / 32] = value;
    __syncthreads();
    return table[threadIdx.y][0] + table[threadIdx.y][1];
}

__global__ void __launch_bounds__(64 * ROWS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ float sums[3][ROWS][2];
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const bool inside = row < N;   // threads outside stay for the barriers
    const float* in = x + size_t(inside ? row : 0) * C;
    float acc = 0.0f;
    for (int c = threadIdx.x; c < C; c += 64) acc += in[c];
    const float mu = ROW_SUM(acc, 0) / C;
    float a1 = 0.0f, a2 = 0.0f;
    for (int c = threadIdx.x; c < C; c += 64) {
        const float d = in[c] - mu;
        a1 += d;
        a2 = fmaf(d, d, a2);
    }
    const float shift = ROW_SUM(a1, 1) / C;
    const float var = ROW_SUM(a2, 2) / C - shift * shift;
    const float r = rsqrtf(max(var, 0.0f) + eps);
    if (!inside) return;
    for (int c = threadIdx.x; c < C; c += 64) out[size_t(row) * C + c] = (in[c] - mu - shift) * r * weight[c] + bias[c];
}
