/* evoengine
name: matmul_passed_around
precision: fp16
summary: no shared memory; a warp has eight rows and 64 columns, its lanes load 32 numbers of each row and pass them around
let:
  EVEN: 1 if N % 2 == 0 else 0
launches:
  - kernel: multiply<EVEN>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 32)"]
    block: [32, 4]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 8;

template <int EVEN>
__global__ void __launch_bounds__(128)
multiply(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    const int lane = threadIdx.x, first = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
    const int column = blockIdx.x * 64 + lane * 2;
    const bool one = column < N, two = column + 1 < N;
    float sum[ROWS][2] = {};

    for (int from = 0; from < K; from += 32) {
        float own[ROWS];
        for (int r = 0; r < ROWS; ++r)
            own[r] = first + r < M && from + lane < K ? __half2float(a[size_t(first + r) * K + from + lane]) : 0.0f;
        const int depth = min(32, K - from);
        for (int d = 0; d < depth; ++d) {
            const half* source = b + size_t(from + d) * N + column;
            float2 pair = make_float2(0.0f, 0.0f);
            if (EVEN) {
                if (one) pair = __half22float2(*reinterpret_cast<const half2*>(source));
            } else {
                if (one) pair.x = __half2float(source[0]);
                if (two) pair.y = __half2float(source[1]);
            }
            for (int r = 0; r < ROWS; ++r) {
                const float x = __shfl_sync(0xffffffffu, own[r], d);
                sum[r][0] = fmaf(x, pair.x, sum[r][0]);
                sum[r][1] = fmaf(x, pair.y, sum[r][1]);
            }
        }
    }

    for (int r = 0; r < ROWS; ++r) {
        if (first + r >= M) break;
        half* target = out + size_t(first + r) * N + column;
        if (one) target[0] = __float2half(sum[r][0]);
        if (two) target[1] = __float2half(sum[r][1]);
    }
}
