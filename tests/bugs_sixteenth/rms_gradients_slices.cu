/* evoengine
name: rms_gradients_slices
precision: fp32
summary: a warp has a row and leaves its inverse root behind; a second launch adds slices of the rows for each column, a third one adds the slices
constants:
  SLICES: 3
scratch:
  inverses: {dtype: float32, shape: [N]}
  parts: {dtype: float32, shape: [3, C]}
launches:
  - kernel: row_gradients
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [x, weight, grad, dx, inverses, N, C, eps]
  - kernel: column_parts
    grid: ["ceil_div(C, 32)", 3]
    block: [32, 8]
    args: [x, grad, inverses, parts, N, C, "ceil_div(N, 3)"]
  - kernel: join_parts
    grid: ["ceil_div(C, 128)"]
    block: [128]
    args: [parts, dweight, C]
*/
constexpr int COLUMNS = 32, TEAMS = 8;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
    return value;
}

__global__ void __launch_bounds__(128)
row_gradients(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ grad,
              float* __restrict__ dx, float* __restrict__ inverses, int N, int C, float eps) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const float4* values = reinterpret_cast<const float4*>(x + size_t(row) * C);
    const float4* slopes = reinterpret_cast<const float4*>(grad + size_t(row) * C);
    const float4* gains = reinterpret_cast<const float4*>(weight);
    float squares = 0.0f, dot = 0.0f;
    for (int i = lane; i < C / 4; i += 32) {
        const float4 v = values[i], s = slopes[i], g = gains[i];
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        dot += s.x * g.x * v.x + s.y * g.y * v.y + s.z * g.z * v.z + s.w * g.w * v.w;
    }
    squares = warp_sum(squares);
    dot = warp_sum(dot);
    const float inverse = 1.0f / sqrtf(squares / C + eps);
    const float pull = dot * inverse * inverse * inverse / C;
    float4* results = reinterpret_cast<float4*>(dx + size_t(row) * C);
    for (int i = lane; i < C / 4; i += 32) {
        const float4 v = values[i], s = slopes[i], g = gains[i];
        results[i] = make_float4(s.x * g.x * inverse - v.x * pull, s.y * g.y * inverse - v.y * pull,
                                 s.z * g.z * inverse - v.z * pull, s.w * g.w * inverse - v.w * pull);
    }
    if (lane == 0) inverses[row] = inverse;
}

__global__ void __launch_bounds__(COLUMNS * TEAMS)
column_parts(const float* __restrict__ x, const float* __restrict__ grad, const float* __restrict__ inverses,
             float* __restrict__ parts, int N, int C, int length) {
    __shared__ float sums[TEAMS][COLUMNS];
    const int column = blockIdx.x * COLUMNS + threadIdx.x, first = blockIdx.y * length, last = min(N, first + length);
    float sum = 0.0f;
    if (column < C) {
        for (int row = first + threadIdx.y; row < last; row += TEAMS)
            sum += grad[size_t(row) * C + column] * x[size_t(row) * C + column] * inverses[row];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    for (int step = TEAMS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.y < step) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + step][threadIdx.x];
    }
    if (threadIdx.y == 0 && column < C) parts[size_t(blockIdx.y) * C + column] = sums[0][threadIdx.x];
}

__global__ void __launch_bounds__(128)
join_parts(const float* __restrict__ parts, float* __restrict__ dweight, int C) {
    const int column = blockIdx.x * 128 + threadIdx.x;
    if (column >= C) return;
    float sum = 0.0f;
#pragma unroll
    for (int slice = 0; slice < SLICES; ++slice) sum += parts[size_t(slice) * C + column];
    dweight[column] = sum;
}
