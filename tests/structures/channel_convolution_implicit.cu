/* evoengine
name: channel_convolution_implicit
precision: fp16
summary: a product of places and filters by mma.sync, tiles of 64 x 64; each step is one tap, whose pixels are fetched by asynchronous copies, zeros outside
launches:
  - kernel: convolve
    grid: ["ceil_div(B * H * W, 64)", F // 64]
    block: [128]
    args: [x, filters, out, B, H, W, F]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ int place(int row, int chunk) { return row * 64 + ((chunk ^ (row % 8)) * 8); }

__device__ __forceinline__ void load4(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(p)));
}

__global__ void __launch_bounds__(128)
convolve(const __half* __restrict__ x, const __half* __restrict__ filters, __half* __restrict__ out, int B, int H, int W, int F) {
    __shared__ __align__(128) __half stages[2][128 * 64];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp / 2 * 32, wn = warp % 2 * 32, chunk = t % 8, places = B * H * W;
    int image[4], row[4], column[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = blockIdx.x * 64 + i * 16 + t / 8;
        image[i] = at / (H * W), row[i] = at % (H * W) / W, column[i] = at % W;
        if (at >= places) row[i] = -10;
    }
    auto load = [&](int tap) {
        __half* to = stages[tap % 2];
        const int down = tap / 3 - 1, right = tap % 3 - 1;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int y = row[i] + down, z = column[i] + right;
            const bool inside = y >= 0 && y < H && z >= 0 && z < W;
            const __half* from = inside ? x + (size_t(image[i] * H + y) * W + z) * 64 + chunk * 8 : x;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to + place(i * 16 + t / 8, chunk))), "l"(from), "r"(inside ? 16 : 0) : "memory");
            const __half* of = filters + (size_t(blockIdx.y * 64 + i * 16 + t / 8) * 9 + tap) * 64 + chunk * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(to + place(64 + i * 16 + t / 8, chunk))), "l"(of) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[2][4][4] = {};
    load(0);
    for (int tap = 0; tap < 9; ++tap) {
        if (tap + 1 < 9) {
            load(tap + 1);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        const __half* stage = stages[tap % 2];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned a[2][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) load4(a[i], stage + place(wm + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < 2; ++j) load4(b[j], stage + place(64 + wn + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j / 2][j % 2 * 2]), "r"(b[j / 2][j % 2 * 2 + 1]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int at = blockIdx.x * 64 + wm + i * 16 + lane / 4 + half * 8;
            if (at < places)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    *reinterpret_cast<__half2*>(out + size_t(at) * F + blockIdx.y * 64 + wn + j * 8 + lane % 4 * 2) = __floats2half2_rn(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
        }
}
