/* evoengine
name: trellis_gemm_two_launches
precision: fp16
summary: mma.sync on a ring of cp.async stages, the depth split over blocks, parts added by a second launch
tunables:
  SPLITS: [2, 1, 4]            # blocks that share the depth of one tile
  STAGES: [3, 2, 4]            # steps of depth in shared memory
  SUM_THREADS: [256, 128]
let:
  VEC_A: 1 if K % 8 == 0 else 0
  VEC_B: 1 if N % 8 == 0 else 0
  WIDE: 4 if (M * N) % 4 == 0 else 1
  RING_BYTES: STAGES * 2 * (64 * 40 + 32 * 72)
require:
  - RING_BYTES <= MAX_SHARED_BYTES
  - STAGES >= 2
scratch:
  parts: {dtype: float32, shape: [SPLITS, M, N]}
launches:
  - kernel: "trellis::multiply<VEC_A, VEC_B>"
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [128]
    shared: RING_BYTES
    args: [a, b, parts, M, N, K]
  - kernel: "trellis::add_parts<WIDE>"
    grid: ["ceil_div(M * N, SUM_THREADS * WIDE)"]
    block: [SUM_THREADS]
    args: [parts, out, {value: M * N, dtype: int64}]
*/
// Four warps compute a 64 x 64 tile, each of them 32 x 32 of it as 2 x 4 products m16n8k16. A step takes 32 of the depth.
// Rows in shared memory are padded by 16 bytes, so that the eight rows that ldmatrix reads at once lie in different banks.
#include <cuda_fp16.h>

namespace trellis {

constexpr int kTileM = 64, kTileN = 64, kStep = 32;
constexpr int kPitchA = kStep + 8, kPitchB = kTileN + 8;
constexpr int kStageA = kTileM * kPitchA, kStageB = kStep * kPitchB;
constexpr int kThreads = 128;

__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// 16 bytes into shared memory in the background; with `inside` false they are zeros and nothing is read.
__device__ __forceinline__ void copy16(__half* to, const __half* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

__device__ __forceinline__ void ldmatrix4(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void ldmatrix4_trans(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void mma16816(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A ROWS x COLUMNS piece of a row-major matrix, from (row, column) on, zeros beyond its edges.
template <int ROWS, int COLUMNS, int PITCH, bool VECTORS>
__device__ __forceinline__ void stage(__half* tile, const __half* matrix, int rows, int columns, int row, int column) {
    constexpr int kAcross = COLUMNS / 8;
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * kAcross; i += kThreads) {
        const int r = i / kAcross, c = i % kAcross * 8;
        __half* to = tile + r * PITCH + c;
        if (VECTORS) {
            const bool inside = row + r < rows && column + c < columns;
            copy16(to, inside ? matrix + size_t(row + r) * columns + column + c : matrix, inside);
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e)
                to[e] = row + r < rows && column + c + e < columns ? matrix[size_t(row + r) * columns + column + c + e] : __half(0.0f);
        }
    }
}

template <int VEC_A, int VEC_B>
__global__ void __launch_bounds__(kThreads)
multiply(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ parts, int M, int N, int K) {
    extern __shared__ __align__(16) __half ring[];
    __half* ring_a = ring;
    __half* ring_b = ring + STAGES * kStageA;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
    const int tile_m = blockIdx.y * kTileM, tile_n = blockIdx.x * kTileN;

    // The steps of this block: a contiguous range, possibly empty for the last one.
    const int steps = (K + kStep - 1) / kStep;
    const int share = (steps + SPLITS - 1) / SPLITS;
    const int first = min(steps, int(blockIdx.z) * share), count = min(steps, first + share) - first;

    auto request = [&](int s) {
        if (s < count) {
            const int slot = s % STAGES, k = (first + s) * kStep;
            stage<kTileM, kStep, kPitchA, VEC_A>(ring_a + slot * kStageA, a, M, K, tile_m, k);
            stage<kStep, kTileN, kPitchB, VEC_B>(ring_b + slot * kStageB, b, K, N, k, tile_n);
        }
        commit();    // an empty group, too: the count of groups then tells the step
    };

    float sum[2][4][4] = {};
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) request(s);

    for (int s = 0; s < count; ++s) {
        wait<STAGES - 2>();
        __syncthreads();    // step s is there for all, and all are done with step s - 1
        request(s + STAGES - 1);
        const __half* now_a = ring_a + s % STAGES * kStageA;
        const __half* now_b = ring_b + s % STAGES * kStageB;
#pragma unroll
        for (int k = 0; k < kStep; k += 16) {
            unsigned left[2][4], right[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                ldmatrix4(left[i], now_a + (warp_m + i * 16 + lane % 16) * kPitchA + k + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < 2; ++j)    // 16 of the depth by 16 columns: two operands of mma
                ldmatrix4_trans(right[j], now_b + (k + lane % 16) * kPitchB + warp_n + j * 16 + lane / 16 * 8);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) mma16816(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
        }
    }

    float* part = parts + size_t(blockIdx.z) * M * N;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int r = tile_m + warp_m + i * 16 + h * 8 + lane / 4;
                    const int c = tile_n + warp_n + j * 8 + lane % 4 * 2 + e;
                    if (r < M && c < N) part[size_t(r) * N + c] = sum[i][j][h * 2 + e];
                }
}

// The parts of an element lie `total` apart. WIDE elements a thread where that keeps the loads aligned.
template <int WIDE>
__global__ void __launch_bounds__(SUM_THREADS)
add_parts(const float* __restrict__ parts, __half* __restrict__ out, long long total) {
    struct alignas(4 * WIDE) Floats { float v[WIDE]; };
    struct alignas(2 * WIDE) Halves { __half v[WIDE]; };
    const long long at = (static_cast<long long>(blockIdx.x) * SUM_THREADS + threadIdx.x) * WIDE;
    if (at >= total) return;
    float whole[WIDE] = {};
#pragma unroll
    for (int s = 0; s < SPLITS; ++s) {
        const Floats p = *reinterpret_cast<const Floats*>(parts + s * total + at);
#pragma unroll
        for (int w = 0; w < WIDE; ++w) whole[w] += p.v[w];
    }
    Halves result;
#pragma unroll
    for (int w = 0; w < WIDE; ++w) result.v[w] = __float2half_rn(whole[w]);
    *reinterpret_cast<Halves*>(out + at) = result;
}

}  // namespace trellis
