/* evoengine
name: matmul_serpentine_columns
precision: fp16
summary: a block goes down a strip of tiles and through the depth there and back by turns; rows of b are loaded as whole vectors, turned by movmatrix, and their columns lie dealt among the products
tunables:
  RUN: [3, 2, 4]        # tiles below each other that a block computes
  WARPS: [4, 2]         # beside each other, 32 columns each
let:
  AV: 8 if K % 8 == 0 else 1
  BV: 8 if N % 8 == 0 else 1
  STRIP: 32 * WARPS
launches:
  - kernel: "serpentine<AV, BV>"
    grid: ["ceil_div(N, STRIP)", "ceil_div(M, 32 * RUN)"]
    block: ["32 * WARPS"]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cstdint>

namespace {

constexpr int kRows = 32;              // of a tile
constexpr int kDeep = 32;              // of a slice
constexpr int kPitch = kDeep + 8;      // halves between rows of a slice of a in shared memory

__device__ __forceinline__ uint32_t turn(uint32_t m) {
    uint32_t t;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(m));
    return t;
}

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], const __half* p) {
    const uint32_t s = static_cast<uint32_t>(__cvta_generic_to_shared(p));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(s) : "memory");
}

__device__ __forceinline__ void mma16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

union Eight {
    uint4 vector;
    uint32_t pair[4];
    __half one[8];
};

// Eight neighbours of a row that has `limit` elements; zeros where there are none.
template <int V>
__device__ __forceinline__ Eight eight(const __half* row, int from, int limit, bool present) {
    Eight e;
    e.vector = make_uint4(0, 0, 0, 0);
    if (!present || from >= limit) return e;
    if constexpr (V == 8) {
        e.vector = __ldg(reinterpret_cast<const uint4*>(row + from));
    } else {
        for (int i = 0; i < 8; ++i)
            if (from + i < limit) e.one[i] = row[from + i];
    }
    return e;
}

/// Where step `s` of a block is: which tile of its run, and which slice of the depth.
struct Step {
    int tile, slice;
    bool last;          // of its tile

    __device__ Step(int s, int slices) : tile(s / slices) {
        const int i = s - tile * slices;
        slice = tile & 1 ? slices - 1 - i : i;      // odd tiles come back
        last = i == slices - 1;
    }
};

template <int V>
__device__ __forceinline__ void fetch(__half* stage, const __half* a, int M, int K, int row0, int k0) {
    for (int i = threadIdx.x; i < kRows * kDeep / 8; i += 32 * WARPS) {
        const int r = i / (kDeep / 8), k = i % (kDeep / 8) * 8;
        __half* to = stage + r * kPitch + k;
        const __half* row = a + static_cast<size_t>(row0 + r) * K;
        const bool present = row0 + r < M;
        if constexpr (V == 8) {
            const bool inside = present && k0 + k < K;
            __pipeline_memcpy_async(to, inside ? row + k0 + k : a, 16, inside ? 0 : 16);
        } else {
            *reinterpret_cast<uint4*>(to) = eight<1>(row, k0 + k, K, present).vector;
        }
    }
    __pipeline_commit();
}

}  // namespace

template <int AV, int BV>
__global__ void __launch_bounds__(32 * WARPS)
serpentine(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) __half slices_of_a[2][kRows * kPitch];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, q = lane % 4;
    const int top = blockIdx.y * kRows * RUN;
    const int column = blockIdx.x * 32 * WARPS + warp * 32 + q * 8;     // first of the lane's eight
    const int slices = (K + kDeep - 1) / kDeep;
    const int tiles = min(RUN, (M - top + kRows - 1) / kRows);
    const int steps = tiles * slices;

    float sum[2][4][4] = {};
    uint32_t turned[4][4];             // b: [eight of the depth][pair of the lanes' eight columns]
    int held = -1;                     // the slice in `turned`; where the way turns it is needed twice

    fetch<AV>(slices_of_a[0], a, M, K, top, 0);
    for (int s = 0; s < steps; ++s) {
        const Step now(s, slices);
        __pipeline_wait_prior(0);
        __syncthreads();               // slice s is there, and nobody reads slice s - 1 any more
        if (s + 1 < steps) {
            const Step next(s + 1, slices);
            fetch<AV>(slices_of_a[(s + 1) & 1], a, M, K, top + next.tile * kRows, next.slice * kDeep);
        }

        if (now.slice != held) {
#pragma unroll
            for (int d = 0; d < 4; ++d) {
                const int k = now.slice * kDeep + d * 8 + g;
                const Eight e = eight<BV>(b + static_cast<size_t>(k) * N, column, N, k < K);
                // Pairs p of all lanes are an 8 x 8 matrix: its columns 2q, 2q + 1 are the columns 8q + 2p and the next of b.
#pragma unroll
                for (int p = 0; p < 4; ++p) turned[d][p] = turn(e.pair[p]);
            }
            held = now.slice;
        }

        const __half* stage = slices_of_a[s & 1];
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                uint32_t fragment[4];
                ldmatrix4(fragment, stage + (m * 16 + lane % 16) * kPitch + h * 16 + lane / 16 * 8);
#pragma unroll
                for (int p = 0; p < 4; ++p) mma16816(sum[m][p], fragment, turned[2 * h][p], turned[2 * h + 1][p]);
            }

        if (!now.last) continue;
        // Columns 2q, 2q + 1 of product p are the lane's columns 2p, 2p + 1: it has eight neighbours of each of its rows.
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                Eight e;
#pragma unroll
                for (int p = 0; p < 4; ++p) {
                    e.one[2 * p] = __float2half_rn(sum[m][p][2 * half]);
                    e.one[2 * p + 1] = __float2half_rn(sum[m][p][2 * half + 1]);
                    sum[m][p][2 * half] = sum[m][p][2 * half + 1] = 0.0f;
                }
                const int row = top + now.tile * kRows + m * 16 + half * 8 + g;
                if (row >= M) continue;
                __half* to = out + static_cast<size_t>(row) * N + column;
                if constexpr (BV == 8) {
                    if (column < N) *reinterpret_cast<uint4*>(to) = e.vector;
                } else {
                    for (int i = 0; i < 8; ++i)
                        if (column + i < N) to[i] = e.one[i];
                }
            }
    }
}
