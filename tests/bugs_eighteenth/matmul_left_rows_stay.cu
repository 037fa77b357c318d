/* evoengine
name: matmul_left_rows_stay
precision: fp16
summary: a block keeps 16 rows of the left matrix in shared memory, over their whole depth, and walks over strips of 32 columns; fragments of the right one come straight from memory
launches:
  - kernel: multiply_strips
    grid: ["min(ceil_div(N, 32), 3)", "ceil_div(M, 16)"]
    block: [128]
    shared: 32 * (round_up(K, 16) + 8)
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, TALL = 16, STRIP = 32, DEEP = 16;

__device__ __forceinline__ unsigned word(__half first, __half second) {
    const __half2 both = __halves2half2(first, second);
    return *reinterpret_cast<const unsigned*>(&both);
}

__global__ void __launch_bounds__(THREADS)
multiply_strips(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(16) __half rows[];
    const int depth = (K + DEEP - 1) / DEEP * DEEP, pitch = depth + 8, top = blockIdx.y * TALL;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const __half zero = __float2half(0.0f);
    for (int i = threadIdx.x; i < TALL * depth; i += THREADS) {
        const int r = i / depth, c = i % depth;
        rows[r * pitch + c] = top + r < M && c < K ? a[size_t(top + r) * K + c] : zero;
    }
    __syncthreads();   // the rows are complete

    const int strips = (N + STRIP - 1) / STRIP;
    for (int strip = blockIdx.x; strip < strips; strip += gridDim.x) {
        const int side = strip * STRIP + warp * 8, n = side + group;
        auto right = [&](int k) { return n < N && k < K ? b[size_t(k) * N + n] : zero; };
        float sum[4] = {};
        for (int d = 0; d < depth; d += DEEP) {
            unsigned x[4];
            const __half* from = rows + lane % 16 * pitch + d + lane / 16 * 8;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                         : "r"(static_cast<unsigned>(__cvta_generic_to_shared(from))));
            const unsigned low = word(right(d + pair), right(d + pair + 1));
            const unsigned high = word(right(d + pair + 8), right(d + pair + 9));
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(low), "r"(high));
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int m = top + group + e / 2 * 8, c = side + pair + e % 2;
            if (m < M && c < N) out[size_t(m) * N + c] = __float2half(sum[e]);
        }
    }
}
