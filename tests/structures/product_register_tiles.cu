/* evoengine
name: product_register_tiles
precision: fp32
summary: tiles of 128 x 128 in single precision, 8 x 8 sums a thread; b by asynchronous copies, a transposed through registers, two stages
launches:
  - kernel: product
    grid: ["ceil_div(N, 128)", "ceil_div(M, 128)"]
    block: [256]
    args: [a, b, out, M, N, K]
*/
#include <cuda_pipeline.h>

constexpr int STEP = 8;

__global__ void __launch_bounds__(256)
product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) float left[2][STEP][132], right[2][STEP][128];
    const int t = threadIdx.x, row0 = blockIdx.y * 128, column0 = blockIdx.x * 128;
    const int a_row = t / 2, a_part = t % 2 * 4, b_row = t / 32, b_part = t % 32 * 4;
    const int x = t % 16 * 4, y = t / 16 * 4;
    float sums[8][8] = {};
    float4 fetched;
    auto fetch = [&](int k0, int stage) {
        const int row = row0 + a_row, k = k0 + a_part;
        fetched = row < M && k < K ? *reinterpret_cast<const float4*>(a + size_t(row) * K + k) : make_float4(0, 0, 0, 0);
        const bool there = k0 + b_row < K && column0 + b_part < N;
        __pipeline_memcpy_async(&right[stage][b_row][b_part], b + (there ? size_t(k0 + b_row) * N + column0 + b_part : 0), 16, there ? 0 : 16);
        __pipeline_commit();
    };
    auto keep = [&](int stage) {
        left[stage][a_part][a_row] = fetched.x;
        left[stage][a_part + 1][a_row] = fetched.y;
        left[stage][a_part + 2][a_row] = fetched.z;
        left[stage][a_part + 3][a_row] = fetched.w;
    };
    fetch(0, 0);
    keep(0);
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int k0 = 0, stage = 0; k0 < K; k0 += STEP, stage ^= 1) {
        const bool more = k0 + STEP < K;
        if (more) fetch(k0 + STEP, stage ^ 1);
#pragma unroll
        for (int k = 0; k < STEP; ++k) {
            float of_a[8], of_b[8];
            *reinterpret_cast<float4*>(of_a) = *reinterpret_cast<float4*>(&left[stage][k][y]);
            *reinterpret_cast<float4*>(of_a + 4) = *reinterpret_cast<float4*>(&left[stage][k][y + 64]);
            *reinterpret_cast<float4*>(of_b) = *reinterpret_cast<float4*>(&right[stage][k][x]);
            *reinterpret_cast<float4*>(of_b + 4) = *reinterpret_cast<float4*>(&right[stage][k][x + 64]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] += of_a[i] * of_b[j];
        }
        if (more) {
            keep(stage ^ 1);
            __pipeline_wait_prior(0);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + y + i % 4 + i / 4 * 64;
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int column = column0 + x + j / 4 * 64;
            if (row < M && column < N)
                *reinterpret_cast<float4*>(out + size_t(row) * N + column) = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        }
    }
}
