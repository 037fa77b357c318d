/* evoengine
name: matmul_workspace_slices
precision: fp16
summary: slices of the depth in blocks of their own, whose tiles of mma.sync go to a workspace; a second launch adds the slices up
tunables:
  SLICES: [3, 2, 4]
let:
  SPAN: ceil_div(K, SLICES)
scratch:
  parts: {dtype: float32, shape: [SLICES, M, N]}
launches:
  - kernel: slice_products
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SLICES]
    block: [128]
    args: [a, b, parts, M, N, K, SPAN]
  - kernel: add_slices
    grid: ["ceil_div(M*N, 256)"]
    block: [256]
    args: [parts, out, M*N]
*/
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 16, PITCH = BK + 8, THREADS = 128;
constexpr int PER_THREAD = BM * BK / THREADS;   // elements of a tile of either operand

__device__ __forceinline__ void mma16816(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(THREADS)
slice_products(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ parts,
               int M, int N, int K, int span) {
    __shared__ __half rows[2][BM][PITCH];      // [m][k]
    __shared__ __half columns[2][BN][PITCH];   // [n][k]: b is transposed on its way in

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int group = lane / 4, quad = lane % 4;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    const int begin = blockIdx.z * span, end = min(K, begin + span);
    const __half zero = __float2half(0.0f);

    __half next_a[PER_THREAD], next_b[PER_THREAD];
    auto fetch = [&](int k0) {
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int e = i * THREADS + thread;
            const int m = block_row + e / BK, ka = k0 + e % BK;
            next_a[i] = m < M && ka < end ? a[size_t(m) * K + ka] : zero;
            const int n = block_column + e % BN, kb = k0 + e / BN;
            next_b[i] = n < N && kb < end ? b[size_t(kb) * N + n] : zero;
        }
    };
    auto put = [&](int stage) {
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int e = i * THREADS + thread;
            rows[stage][e / BK][e % BK] = next_a[i];
            columns[stage][e % BN][e / BN] = next_b[i];
        }
    };

    float sums[2][4][4] = {};
    fetch(begin);
    put(0);
    __syncthreads();
    int stage = 0;
    for (int k = begin; k < end; k += BK) {
        const bool more = k + BK < end;
        if (more) fetch(k + BK);
        unsigned fragment_a[2][4], fragment_b[4][2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int r = 0; r < 4; ++r)
                fragment_a[i][r] = *reinterpret_cast<const unsigned*>(
                    &rows[stage][warp_row + i * 16 + group + r % 2 * 8][quad * 2 + r / 2 * 8]);
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int r = 0; r < 2; ++r)
                fragment_b[j][r] = *reinterpret_cast<const unsigned*>(
                    &columns[stage][warp_column + j * 8 + group][quad * 2 + r * 8]);
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) mma16816(sums[i][j], fragment_a[i], fragment_b[j]);
        if (more) put(stage ^ 1);
        __syncthreads();
        stage ^= 1;
    }

    float* target = parts + size_t(blockIdx.z) * M * N;
    const int row = block_row + warp_row + group;
    const int column = block_column + warp_column + quad * 2;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int m = row + i * 16 + e / 2 * 8, n = column + j * 8 + e % 2;
                if (m < M && n < N) target[size_t(m) * N + n] = sums[i][j][e];
            }
}

__global__ void __launch_bounds__(256)
add_slices(const float* __restrict__ parts, __half* __restrict__ out, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    float sum = parts[i];
#pragma unroll
    for (int s = 1; s < SLICES; ++s) sum += parts[size_t(s) * size + i];
    out[i] = __float2half(sum);
}
