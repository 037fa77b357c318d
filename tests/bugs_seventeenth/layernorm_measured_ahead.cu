/* evoengine
name: layernorm_measured_ahead
precision: fp32
summary: blocks stride over the rows; while a row is normalised, the next one is measured, as sums of differences from the middle one of three of its elements
launches:
  - kernel: normalise
    grid: ["min(N, 4)"]
    block: [128]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int THREADS = 128, WARPS = 4;

// The middle one of three elements of a row: near its mean, however large that is.
__device__ __forceinline__ float pivot_of(const float* __restrict__ row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

// Leaves this warp's sum and sum of squares of the differences from the pivot.
__device__ __forceinline__ void measure(const float* __restrict__ row, int C, float2 (&slots)[WARPS]) {
    const float pivot = pivot_of(row, C);
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < C; i += THREADS) {
        const float difference = row[i] - pivot;
        sum += difference;
        squares = fmaf(difference, difference, squares);
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        squares += __shfl_xor_sync(0xffffffffu, squares, mask);
    }
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = make_float2(sum, squares);
}

__global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ float2 slots[2][WARPS];
    int turn = 0;
    measure(x + size_t(blockIdx.x) * C, C, slots[0]);
    for (int row = blockIdx.x; row < N; row += gridDim.x, ++turn) {
        __syncthreads();   // this row has been measured, and the slots of the next one are free
        const int next = row + gridDim.x;
        if (next < N) measure(x + size_t(next) * C, C, slots[(turn + 1) % 2]);

        const float* now = x + size_t(row) * C;
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            sum += slots[turn % 2][w].x;
            squares += slots[turn % 2][w].y;
        }
        const float pivot = pivot_of(now, C), offset = sum / C;
        const float variance = fmaxf(squares / C - offset * offset, 0.0f);
        const float inverse = 1.0f / sqrtf(variance + eps);
        float* to = out + size_t(row) * C;
        for (int i = threadIdx.x; i < C; i += THREADS)
            to[i] = fmaf((now[i] - pivot - offset) * inverse, weight[i], bias[i]);
    }
}
