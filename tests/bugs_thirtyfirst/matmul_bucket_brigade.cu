/* evoengine
name: matmul_bucket_brigade
precision: fp16
summary: a warp keeps its block of b in registers; the sums of 16 rows wander from warp to warp through mailboxes, and each warp adds its part of the depth
tunables:
  LINKS: [4, 2]          # warps of a chain
  SPAN: [32, 64]         # of the depth that a warp keeps
  BAND: [8, 4]           # tiles of 16 rows that a block sends down its chain
let:
  PAIRED: 1 if K % 2 == 0 and N % 2 == 0 else 0
  ROUNDS: ceil_div(K, LINKS * SPAN)
scratch:
  carry: {dtype: float32, shape: ["ceil_div(M, 16)", "ceil_div(N, 32)", 512]}   # sums between two rounds
launches:
  - kernel: brigade<PAIRED>
    grid: ["ceil_div(N, 32)", "ceil_div(M, 16 * BAND)"]
    block: [32, LINKS]
    shared: 2 * 2048 * (LINKS - 1)
    args: [a, b, carry, out, M, N, K, ROUNDS]
*/
#include <cuda_fp16.h>

// b does not move: in one round the chain covers LINKS * SPAN of the depth, warp w the w-th SPAN of it.
// A bucket is the fp32 tile of 16 x 32 that goes from hand to hand. Between warps w and w + 1 there is a
// mailbox with two slots. Each slot has two named barriers: FULL (w arrives, w + 1 waits) and EMPTY (the
// other way round). Deeper matrices take several rounds, between which the buckets rest in `carry`.

#define DEEP (SPAN / 16)

typedef unsigned u32;

__device__ __forceinline__ int full(int link, int slot) { return 1 + 4 * link + slot; }
__device__ __forceinline__ int empty(int link, int slot) { return 3 + 4 * link + slot; }
__device__ __forceinline__ void wait_at(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
__device__ __forceinline__ void arrive_at(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }

__device__ __forceinline__ u32 pack(__half lo, __half hi) {
    return (u32)__half_as_ushort(lo) | (u32)__half_as_ushort(hi) << 16;
}

struct Bucket {
    float v[4][4];   // [columns of eight][register of the accumulator]

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < 16; ++i) v[i / 4][i % 4] = 0.f;
    }
    // In memory a bucket is 16 rows of 32 lanes, so all accesses are dense.
    __device__ void pour(float* to, int lane) const {
#pragma unroll
        for (int i = 0; i < 16; ++i) to[i * 32 + lane] = v[i / 4][i % 4];
    }
    __device__ void scoop(const float* from, int lane) {
#pragma unroll
        for (int i = 0; i < 16; ++i) v[i / 4][i % 4] = from[i * 32 + lane];
    }
};

// Two neighbours in the depth of one row of a.
template <int PAIRED>
__device__ __forceinline__ u32 left(const __half* a, int M, int K, int r, int k) {
    if (r >= M || k >= K) return 0u;
    const __half* p = a + (size_t)r * K + k;
    if (PAIRED) return *(const u32*)p;
    return pack(p[0], k + 1 < K ? p[1] : __half(0.f));
}

__device__ __forceinline__ __half right(const __half* b, int N, int K, int k, int n) {
    return k < K && n < N ? b[(size_t)k * N + n] : __half(0.f);
}

__device__ __forceinline__ void mma(float* d, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int PAIRED>
__device__ void deliver(const Bucket& s, __half* out, int M, int N, int row, int col, int lane) {
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int r = row + lane / 4 + 8 * h, c = col + 8 * t + lane % 4 * 2;
            if (r >= M || c >= N) continue;
            const __half2 two = __floats2half2_rn(s.v[t][2 * h], s.v[t][2 * h + 1]);
            __half* p = out + (size_t)r * N + c;
            if (PAIRED) { *(__half2*)p = two; continue; }
            p[0] = __low2half(two);
            if (c + 1 < N) p[1] = __high2half(two);
        }
}

template <int PAIRED>
__global__ void __launch_bounds__(32 * LINKS)
brigade(const __half* __restrict__ a, const __half* __restrict__ b, float* carry, __half* __restrict__ out, int M, int N, int K, int rounds) {
    extern __shared__ float boxes[];                  // [LINKS - 1][2][512]
    const int lane = threadIdx.x, w = threadIdx.y;
    const int col = blockIdx.x * 32;
    const int first = blockIdx.y * BAND;              // tile of rows
    const int tiles = min(BAND, (M + 15) / 16 - first);
    const bool head = w == 0, tail = w == LINKS - 1;

    u32 keep[DEEP][4][2];
    int sent = 0;                                     // buckets that have passed this warp, over all rounds
    const int total = rounds * tiles;

    for (int round = 0; round < rounds; ++round) {
        const int k0 = (round * LINKS + w) * SPAN;
#pragma unroll
        for (int d = 0; d < DEEP; ++d)
#pragma unroll
            for (int t = 0; t < 4; ++t)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int k = k0 + d * 16 + h * 8 + lane % 4 * 2, n = col + t * 8 + lane / 4;
                    keep[d][t][h] = pack(right(b, N, K, k, n), right(b, N, K, k + 1, n));
                }

        for (int tile = 0; tile < tiles; ++tile, ++sent) {
            const int slot = sent & 1;
            const int row = (first + tile) * 16;
            float* rest = carry + ((size_t)(first + tile) * gridDim.x + blockIdx.x) * 512;

            Bucket s;
            if (!head) {
                wait_at(full(w - 1, slot));
                s.scoop(boxes + ((w - 1) * 2 + slot) * 512, lane);
                if (sent + 2 < total) arrive_at(empty(w - 1, slot));   // nobody waits for the last two
            } else if (round == 0) {
                s.clear();
            } else {
                s.scoop(rest, lane);
            }

#pragma unroll
            for (int d = 0; d < DEEP; ++d) {
                const int r = row + lane / 4, k = k0 + d * 16 + lane % 4 * 2;
                const u32 f[4] = {left<PAIRED>(a, M, K, r, k), left<PAIRED>(a, M, K, r + 8, k),
                                  left<PAIRED>(a, M, K, r, k + 8), left<PAIRED>(a, M, K, r + 8, k + 8)};
#pragma unroll
                for (int t = 0; t < 4; ++t) mma(s.v[t], f, keep[d][t]);
            }

            if (!tail) {
                if (sent >= 2) wait_at(empty(w, slot));
                s.pour(boxes + (w * 2 + slot) * 512, lane);
                arrive_at(full(w, slot));
            } else if (round + 1 < rounds) {
                s.pour(rest, lane);
            } else {
                deliver<PAIRED>(s, out, M, N, row, col, lane);
            }
        }
        __syncthreads();                              // all buckets rest before the head takes them up again
    }
}
