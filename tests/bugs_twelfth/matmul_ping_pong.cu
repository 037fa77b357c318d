/* evoengine
name: matmul_ping_pong
precision: fp16
summary: four by four sums a thread, two stages of tiles in shared memory, the next tile fetched into registers during the products
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [256]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 16, PITCH = TILE + 4;

struct alignas(8) Four { half value[4]; };

__global__ void __launch_bounds__(256)
multiply(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    __shared__ float left[2][DEPTH][PITCH];    // the tile of a is kept by columns
    __shared__ float right[2][DEPTH][PITCH];
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    float next_left[4], next_right[4];

    auto fetch = [&](int depth) {
        const int r = row + thread / 4, k = depth + thread / 16;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int at = depth + thread % 4 * 4 + i, c = column + tx * 4 + i;
            next_left[i] = r < M && at < K ? __half2float(a[size_t(r) * K + at]) : 0.0f;
            next_right[i] = k < K && c < N ? __half2float(b[size_t(k) * N + c]) : 0.0f;
        }
    };
    auto put = [&](int stage) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            left[stage][thread % 4 * 4 + i][thread / 4] = next_left[i];
            right[stage][thread / 16][tx * 4 + i] = next_right[i];
        }
    };

    float sum[4][4] = {};
    fetch(0);
    put(0);
    __syncthreads();
    int stage = 0;
    for (int depth = 0; depth < K; depth += DEPTH) {
        const bool more = depth + DEPTH < K;
        if (more) fetch(depth + DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            float x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                x[i] = left[stage][k][ty * 4 + i];
                y[i] = right[stage][k][tx * 4 + i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
        }
        if (more) put(stage ^ 1);   // its last readers are behind the barrier of the step before
        __syncthreads();
        stage ^= 1;
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int r = row + ty * 4 + i, c = column + tx * 4;
        if (r >= M) break;
        if (N % 4 == 0 && c < N) {
            Four four;
#pragma unroll
            for (int j = 0; j < 4; ++j) four.value[j] = __float2half(sum[i][j]);
            *reinterpret_cast<Four*>(out + size_t(r) * N + c) = four;
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (c + j < N) out[size_t(r) * N + c + j] = __float2half(sum[i][j]);
        }
    }
}
