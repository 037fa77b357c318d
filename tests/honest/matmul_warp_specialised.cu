/* evoengine
name: matmul_warp_specialised
precision: fp16
summary: two warps copy tiles into a ring in shared memory, four warps multiply them; full and empty named barriers
tunables:
  RING: [4, 2, 3]
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [192]
    shared: 2 * RING * (64 * 40 + 32 * 72)
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// Barrier 1 + s: stage s is full; barrier 1 + RING + s: it is empty. All 192 threads take part in each, half of the roles
// by arriving only.
__device__ __forceinline__ void wait_at(int barrier) { asm volatile("bar.sync %0, 192;" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ void arrive_at(int barrier) { asm volatile("bar.arrive %0, 192;" ::"r"(barrier) : "memory"); }

constexpr int STAGE = 64 * 40 + 32 * 72;

__device__ void produce(__half* ring, const __half* __restrict__ a, const __half* __restrict__ b, int M, int N, int K, int row0, int column0) {
    const int t = threadIdx.x - 128;
    const __half nothing = __float2half(0.0f);
    for (int step = 0, k0 = 0; k0 < K; ++step, k0 += 32) {
        const int s = step % RING;
        if (step >= RING) wait_at(1 + RING + s);
        __half* ta = ring + s * STAGE;
        __half* tb = ta + 64 * 40;
        for (int i = t; i < 64 * 32; i += 64) {
            const int r = row0 + i / 32, k = k0 + i % 32;
            ta[i / 32 * 40 + i % 32] = r < M && k < K ? a[size_t(r) * K + k] : nothing;
        }
        for (int i = t; i < 32 * 64; i += 64) {
            const int k = k0 + i / 64, n = column0 + i % 64;
            tb[i / 64 * 72 + i % 64] = k < K && n < N ? b[size_t(k) * N + n] : nothing;
        }
        __threadfence_block();
        arrive_at(1 + s);
    }
}

__device__ void consume(__half* ring, __half* __restrict__ out, int M, int N, int K, int row0, int column0) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int steps = (K + 31) / 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(c[j], 0.0f);
    for (int step = 0; step < steps; ++step) {
        const int s = step % RING;
        wait_at(1 + s);
        const __half* ta = ring + s * STAGE;
        const __half* tb = ta + 64 * 40;
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
            wmma::load_matrix_sync(x, ta + warp * 16 * 40 + k, 40);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
                wmma::load_matrix_sync(y, tb + k * 72 + j * 16, 72);
                wmma::mma_sync(c[j], x, y, c[j]);
            }
        }
        if (step + RING < steps) arrive_at(1 + RING + s);   // the producers wait for it once more
    }
    // The warp's own 16 x 16 floats, behind a barrier of the consumers alone, because the ring is read by all of them.
    asm volatile("bar.sync 15, 128;" ::: "memory");
    float* patch = reinterpret_cast<float*>(ring) + warp * 16 * 20;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        wmma::store_matrix_sync(patch, c[j], 20, wmma::mem_row_major);
        __syncwarp();
        for (int i = lane; i < 256; i += 32) {
            const int r = row0 + warp * 16 + i / 16, n = column0 + j * 16 + i % 16;
            if (r < M && n < N) out[size_t(r) * N + n] = __float2half(patch[i / 16 * 20 + i % 16]);
        }
        __syncwarp();
    }
}

__global__ void __launch_bounds__(192)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) __half ring[];
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    if (threadIdx.x >= 128) produce(ring, a, b, M, N, K, row0, column0);
    else consume(ring, out, M, N, K, row0, column0);
}
