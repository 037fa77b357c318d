/* evoengine
name: matmul_jasper_slabs
precision: fp16
summary: persistent blocks over grouped tiles of slices of K, swizzled cp.async ring, ldmatrix and mma.sync, a merging launch
tunables:
  BN: [64, 128]
  STAGES: [3, 4]
  SPLITS: [2, 1, 4]
  GROUP: [4, 8]        # rows of tiles that are walked together, for the L2
  EACH: [2, 1, 4]      # tiles a block takes
let:
  TM: ceil_div(M, 64)
  TN: ceil_div(N, BN)
  ITEMS: TM * TN * SPLITS
  STEPS: ceil_div(ceil_div(K, 32), SPLITS)
  ALIGNED_A: 1 if K % 8 == 0 else 0
  ALIGNED_B: 1 if N % 8 == 0 else 0
  V: 4 if M * N % 4 == 0 else (2 if M * N % 2 == 0 else 1)
  RING_BYTES: STAGES * (64 * 32 + 32 * BN) * 2
require:
  - RING_BYTES <= MAX_SHARED_BYTES
scratch:
  slabs: {dtype: float32, shape: [SPLITS, M, N]}
launches:
  - kernel: "multiply_slabs<ALIGNED_A, ALIGNED_B>"
    grid: ["ceil_div(ITEMS, EACH)"]
    block: [128]
    shared: RING_BYTES
    args: [a, b, slabs, M, N, K, TM, TN, ITEMS, STEPS]
  - kernel: merge_slabs<V>
    grid: ["ceil_div(M * N, 256 * V)"]
    block: [256]
    args: [slabs, out, {value: M * N, dtype: int64}]
*/
#include <cuda_fp16.h>
#include <cstdint>

// A tile is 64 x BN; four warps of 32 x BN/2 each. A stage of the ring holds 64 x 32 of `a` and 32 x BN of `b`.
constexpr int kRows = 64, kDepth = 32, kThreads = 128;
constexpr int kHalvesA = kRows * kDepth, kHalvesB = kDepth * BN, kStage = kHalvesA + kHalvesB;
constexpr int kFragM = 2, kFragN = BN / 16;

// Where the chunk of 8 halves lies, in halves. A row of `a` has four chunks, so two rows share a line of 128 bytes.
__device__ __forceinline__ int place_a(int row, int chunk) { return row * kDepth + ((chunk ^ (row >> 1 & 3)) << 3); }
__device__ __forceinline__ int place_b(int row, int chunk) { return row * BN + ((chunk ^ (row & 7)) << 3); }

__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

template <int ALIGNED>
__device__ __forceinline__ void bring(__half* to, const __half* __restrict__ from, int rows, int columns, int r, int c) {
    if constexpr (ALIGNED) {
        const bool inside = r < rows && c < columns;
        const __half* source = inside ? from + size_t(r) * columns + c : from;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(smem(to)), "l"(source), "r"(inside ? 16 : 0));
    } else {
        __align__(16) __half eight[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            eight[i] = r < rows && c + i < columns ? from[size_t(r) * columns + c + i] : __float2half(0.0f);
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(eight);
    }
}

template <int ALIGNED_A, int ALIGNED_B>
__device__ __forceinline__ void fill_stage(__half* stage, const __half* __restrict__ a, const __half* __restrict__ b,
                                           int M, int N, int K, int row0, int col0, int k0) {
#pragma unroll
    for (int i = threadIdx.x; i < kRows * kDepth / 8; i += kThreads) {
        const int r = i >> 2, chunk = i & 3;
        bring<ALIGNED_A>(stage + place_a(r, chunk), a, M, K, row0 + r, k0 + chunk * 8);
    }
#pragma unroll
    for (int i = threadIdx.x; i < kDepth * BN / 8; i += kThreads) {
        const int r = i / (BN / 8), chunk = i % (BN / 8);
        bring<ALIGNED_B>(stage + kHalvesA + place_b(r, chunk), b, K, N, k0 + r, col0 + chunk * 8);
    }
}

__device__ __forceinline__ void multiply_stage(float (&acc)[kFragM][kFragN][4], const __half* stage, int wm, int wn, int lane) {
#pragma unroll
    for (int kk = 0; kk < kDepth / 16; ++kk) {
        uint32_t fa[kFragM][4], fb[kFragN][2];
#pragma unroll
        for (int i = 0; i < kFragM; ++i)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                         : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                         : "r"(smem(stage + place_a(wm + i * 16 + lane % 16, kk * 2 + lane / 16))));
#pragma unroll
        for (int j = 0; j < kFragN; j += 2)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                         : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1])
                         : "r"(smem(stage + kHalvesA + place_b(kk * 16 + lane % 16, wn / 8 + j + lane / 16))));
#pragma unroll
        for (int i = 0; i < kFragM; ++i)
#pragma unroll
            for (int j = 0; j < kFragN; ++j)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                             : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                             : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
    }
}

template <int ALIGNED_A, int ALIGNED_B>
__global__ void __launch_bounds__(kThreads)
multiply_slabs(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ slabs,
               int M, int N, int K, int TM, int TN, int items, int steps) {
    extern __shared__ __align__(128) __half ring[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int wm = (warp >> 1) * 32, wn = (warp & 1) * (BN / 2);
    float acc[kFragM][kFragN][4];

    for (int turn = 0; turn < EACH; ++turn) {
        const int item = blockIdx.x * EACH + turn;
        if (item >= items) break;
        // Within a slice of K the tiles go down GROUP rows of tiles before they go one column on.
        const int slice = item / (TM * TN), rank = item % (TM * TN);
        const int group = rank / (GROUP * TN), first = group * GROUP;
        const int height = min(TM - first, GROUP);
        const int within = rank - group * GROUP * TN;
        const int row0 = (first + within % height) * kRows, col0 = within / height * BN;
        const int k0 = slice * steps * kDepth;
        const int count = max(0, min(steps, (K - k0 + kDepth - 1) / kDepth));

#pragma unroll
        for (int i = 0; i < kFragM; ++i)
#pragma unroll
            for (int j = 0; j < kFragN; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

#pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) {
            if (s < count) fill_stage<ALIGNED_A, ALIGNED_B>(ring + s * kStage, a, b, M, N, K, row0, col0, k0 + s * kDepth);
            asm volatile("cp.async.commit_group;\n");
        }
        for (int step = 0; step < count; ++step) {
            asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2));
            __syncthreads();   // the step's tiles have come, and the stage of the step before is free
            const int next = step + STAGES - 1;
            if (next < count)
                fill_stage<ALIGNED_A, ALIGNED_B>(ring + next % STAGES * kStage, a, b, M, N, K, row0, col0, k0 + next * kDepth);
            asm volatile("cp.async.commit_group;\n");
            multiply_stage(acc, ring + step % STAGES * kStage, wm, wn, lane);
        }
        asm volatile("cp.async.wait_all;\n");
        __syncthreads();       // the next tile fills the ring anew

        float* slab = slabs + size_t(slice) * M * N;
#pragma unroll
        for (int i = 0; i < kFragM; ++i)
#pragma unroll
            for (int j = 0; j < kFragN; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int r = row0 + wm + i * 16 + h * 8 + lane / 4, c = col0 + wn + j * 8 + lane % 4 * 2;
                    if (r >= M || c >= N) continue;
                    float* to = slab + size_t(r) * N + c;
                    if constexpr (ALIGNED_B) {
                        *reinterpret_cast<float2*>(to) = make_float2(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
                    } else {
                        to[0] = acc[i][j][h * 2];
                        if (c + 1 < N) to[1] = acc[i][j][h * 2 + 1];
                    }
                }
    }
}

template <int V> struct alignas(4 * V) Floats { float at[V]; };
template <int V> struct alignas(2 * V) Halves { __half at[V]; };

template <int V>
__global__ void __launch_bounds__(256) merge_slabs(const float* __restrict__ slabs, __half* __restrict__ out, long long total) {
    const long long i = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) * V;
    if (i >= total) return;
    Floats<V> sum = *reinterpret_cast<const Floats<V>*>(slabs + i);
#pragma unroll
    for (int s = 1; s < SPLITS; ++s) {
        const Floats<V> more = *reinterpret_cast<const Floats<V>*>(slabs + s * total + i);
#pragma unroll
        for (int e = 0; e < V; ++e) sum.at[e] += more.at[e];
    }
    Halves<V> result;
#pragma unroll
    for (int e = 0; e < V; ++e) result.at[e] = __float2half_rn(sum.at[e]);
    *reinterpret_cast<Halves<V>*>(out + i) = result;
}
