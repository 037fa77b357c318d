/* evoengine
name: backward_row_warps
precision: fp32
summary: a warp takes a row after another and keeps the column sums of its rows in shared memory; a second launch adds those of all blocks
let:
  BLOCKS: ceil_div(N, 16)
scratch:
  weight_parts: {dtype: float32, shape: [BLOCKS, C]}
  bias_parts: {dtype: float32, shape: [BLOCKS, C]}
launches:
  - kernel: backward_rows
    grid: [BLOCKS]
    block: [128]
    shared: 4 * 2 * C * 4
    args: [x, dy, weight, dx, weight_parts, bias_parts, N, C, eps]
  - kernel: add_columns
    grid: ["ceil_div(C, 32)"]
    block: [32, 8]
    args: [weight_parts, bias_parts, dweight, dbias, BLOCKS, C]
*/
constexpr int ROWS = 16, WARPS = 4;

__device__ __forceinline__ float warp_total(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__global__ void __launch_bounds__(32 * WARPS)
backward_rows(const float* __restrict__ x, const float* __restrict__ dy, const float* __restrict__ weight,
              float* __restrict__ dx, float* __restrict__ weight_parts, float* __restrict__ bias_parts, int N, int C, float eps) {
    extern __shared__ float columns[];   // [WARPS][weight, bias][C]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *for_weight = columns + warp * 2 * C, *for_bias = for_weight + C;
    for (int c = lane; c < C; c += 32) for_weight[c] = for_bias[c] = 0.0f;

    for (int r = warp; r < ROWS; r += WARPS) {
        const int row = blockIdx.x * ROWS + r;
        if (row >= N) break;
        const float *xs = x + size_t(row) * C, *gs = dy + size_t(row) * C;

        float sum = 0.0f;
        for (int c = lane; c < C; c += 32) sum += xs[c];
        const float mean = warp_total(sum) / C;
        float squares = 0.0f;
        for (int c = lane; c < C; c += 32) squares += (xs[c] - mean) * (xs[c] - mean);
        const float inverse = 1.0f / sqrtf(warp_total(squares) / C + eps);

        float plain = 0.0f, along = 0.0f;
        for (int c = lane; c < C; c += 32) {
            const float normal = (xs[c] - mean) * inverse, wanted = gs[c] * weight[c];
            plain += wanted;
            along += wanted * normal;
            for_weight[c] += gs[c] * normal;
            for_bias[c] += gs[c];
        }
        plain = warp_total(plain) / C;
        along = warp_total(along) / C;
        for (int c = lane; c < C; c += 32) {
            const float normal = (xs[c] - mean) * inverse;
            dx[size_t(row) * C + c] = (gs[c] * weight[c] - plain - normal * along) * inverse;
        }
    }

    __syncthreads();
    for (int c = threadIdx.x; c < C; c += 32 * WARPS) {
        float w = 0.0f, b = 0.0f;
        for (int i = 0; i < WARPS; ++i) {
            w += columns[i * 2 * C + c];
            b += columns[i * 2 * C + C + c];
        }
        weight_parts[size_t(blockIdx.x) * C + c] = w;
        bias_parts[size_t(blockIdx.x) * C + c] = b;
    }
}

__global__ void __launch_bounds__(256)
add_columns(const float* __restrict__ weight_parts, const float* __restrict__ bias_parts, float* __restrict__ dweight,
            float* __restrict__ dbias, int blocks, int C) {
    __shared__ float sums[2][8][32];
    const int c = blockIdx.x * 32 + threadIdx.x;
    float w = 0.0f, b = 0.0f;
    for (int i = threadIdx.y; i < blocks && c < C; i += 8) {
        w += weight_parts[size_t(i) * C + c];
        b += bias_parts[size_t(i) * C + c];
    }
    sums[0][threadIdx.y][threadIdx.x] = w;
    sums[1][threadIdx.y][threadIdx.x] = b;
    __syncthreads();
    for (int half = 4; half > 0; half /= 2) {
        if (threadIdx.y < half)
            for (int k = 0; k < 2; ++k) sums[k][threadIdx.y][threadIdx.x] += sums[k][threadIdx.y + half][threadIdx.x];
        __syncthreads();
    }
    if (threadIdx.y == 0 && c < C) {
        dweight[c] = sums[0][0][threadIdx.x];
        dbias[c] = sums[1][0][threadIdx.x];
    }
}
