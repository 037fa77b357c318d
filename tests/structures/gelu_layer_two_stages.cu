/* evoengine
name: gelu_layer_two_stages
precision: fp16
summary: tiles of 64 x 128 by mma.sync, 64 of K at a time by asynchronous copies into two stages; shifts and GELU before the store
launches:
  - kernel: layer
    grid: [N // 128, M // 64]
    block: [128]
    shared: 2 * 24576
    args: [x, w, shifts, out, N, K]
*/
#include <cuda_fp16.h>

constexpr int STAGE = (64 + 128) * 64;

__device__ __forceinline__ unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ int place(int row, int chunk) { return row * 64 + ((chunk ^ (row % 8)) * 8); }

__device__ __forceinline__ void load4(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(p)));
}

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

__global__ void __launch_bounds__(128)
layer(const __half* __restrict__ x, const __half* __restrict__ w, const __half* __restrict__ shifts, __half* __restrict__ out, int N, int K) {
    extern __shared__ __align__(128) __half stages[];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp / 2 * 32, wn = warp % 2 * 64;
    const __half* rows = x + size_t(blockIdx.y) * 64 * K;
    const __half* columns = w + size_t(blockIdx.x) * 128 * K;
    auto load = [&](int step) {
        __half* to = stages + step % 2 * STAGE;
#pragma unroll
        for (int i = 0; i < 12; ++i) {
            const int row = i * 16 + t / 8, chunk = t % 8;
            const __half* from = (i < 4 ? rows + size_t(row) * K : columns + size_t(row - 64) * K) + step * 64 + chunk * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(to + place(row, chunk))), "l"(from) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[2][8][4] = {};
    load(0);
    const int steps = K / 64;
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            load(step + 1);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        const __half* of_x = stages + step % 2 * STAGE;
        const __half* of_w = of_x + 64 * 64;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned a[2][4], b[4][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) load4(a[i], of_x + place(wm + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < 4; ++j) load4(b[j], of_w + place(wn + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j / 2][j % 2 * 2]), "r"(b[j / 2][j % 2 * 2 + 1]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int column = blockIdx.x * 128 + wn + j * 8 + lane % 4 * 2;
        const float2 shift = __half22float2(*reinterpret_cast<const __half2*>(shifts + column));
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = blockIdx.y * 64 + wm + i * 16 + lane / 4 + half * 8;
                *reinterpret_cast<__half2*>(out + size_t(row) * N + column) =
                    __floats2half2_rn(gelu(sum[i][j][half * 2] + shift.x), gelu(sum[i][j][half * 2 + 1] + shift.y));
            }
    }
}
