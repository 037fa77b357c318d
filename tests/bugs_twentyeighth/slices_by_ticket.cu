/* evoengine
name: slices_by_ticket
precision: fp16
summary: K is cut into slices, one a block; the block that takes a tile's last ticket adds the slices up
tunables:
  KS: [4, 2, 8]         # slices of K
let:
  LEN: round_up(ceil_div(K, KS), 32)
  TM: ceil_div(M, 32)
  TN: ceil_div(N, 64)
scratch:
  part: {dtype: float32, shape: [TM, TN, KS, 2048]}
  tick: {dtype: int32, shape: [TM, TN], init: 0}
launches:
  - kernel: sk_gemm
    grid: [TN, TM, KS]
    block: [128]
    args: [a, b, out, part, tick, M, N, K, LEN]
*/
// A block multiplies a 32 x 64 tile over one slice of K. The next step's values come into registers while the present
// one is multiplied from shared memory, which has two buffers, so one barrier a step is enough.
#include <cuda_fp16.h>

#define BM 32
#define BN 64
#define BK 32
#define LD (BK + 8)     // pitch of both tiles

// Eight halves of a row; what lies outside the matrix is zero.
struct alignas(16) h8 { __half v[8]; };

__device__ __forceinline__ h8 ld8(const __half* __restrict__ p, int r, int c, int nr, int nc) {
    h8 x;
    if (nc % 8 == 0 && r < nr && c < nc) {
        x = *reinterpret_cast<const h8*>(p + (long long)r * nc + c);
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) x.v[i] = r < nr && c + i < nc ? p[(long long)r * nc + c + i] : __ushort_as_half(0);
    }
    return x;
}

__device__ __forceinline__ unsigned pair_at(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }

__global__ void __launch_bounds__(128)
sk_gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
        float* part, int* tick, int M, int N, int K, int len) {
    __shared__ __align__(16) __half sa[2][BM][LD];     // rows of a
    __shared__ __align__(16) __half sb[2][BN][LD];     // columns of b: an operand wants its values along k side by side
    __shared__ int last;

    const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5;
    const int g = lane >> 2, t = lane & 3;             // row and pair of columns of a lane in a fragment
    const int wr = (w >> 1) * 16, wc = (w & 1) * 32;   // a warp has 16 x 32
    const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    const int k0 = blockIdx.z * len, k1 = min(K, k0 + len);
    const int steps = k1 > k0 ? (k1 - k0 + BK - 1) / BK : 0;    // a short K leaves the last slices empty

    const int ar = tid / 4, ac = tid % 4 * 8;          // the piece of a that the thread brings
    const int br = tid / 8 * 2, bc = tid % 8 * 8;      // and its two rows of b
    h8 xa, xb0, xb1;
    auto load = [&](int k) {
        xa = ld8(a, m0 + ar, k + ac, M, K);
        xb0 = ld8(b, k + br, n0 + bc, K, N);
        xb1 = ld8(b, k + br + 1, n0 + bc, K, N);
    };
    auto put = [&](int s) {
        *reinterpret_cast<h8*>(&sa[s][ar][ac]) = xa;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            *reinterpret_cast<__half2*>(&sb[s][bc + i][br]) = __halves2half2(xb0.v[i], xb1.v[i]);
    };

    float acc[4][4] = {};
    if (steps > 0) {
        load(k0);
        put(0);
    }
    __syncthreads();
    for (int s = 0; s < steps; ++s) {
        const int cur = s & 1;
        const bool more = s + 1 < steps;
        if (more) load(k0 + (s + 1) * BK);
#pragma unroll
        for (int d = 0; d < BK; d += 16) {
            const int c = d + t * 2;
            const unsigned a0 = pair_at(&sa[cur][wr + g][c]), a1 = pair_at(&sa[cur][wr + g + 8][c]);
            const unsigned a2 = pair_at(&sa[cur][wr + g][c + 8]), a3 = pair_at(&sa[cur][wr + g + 8][c + 8]);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const __half* q = &sb[cur][wc + j * 8 + g][c];
                const unsigned b0 = pair_at(q), b1 = pair_at(q + 8);
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                             : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
            }
        }
        if (more) put(cur ^ 1);
        __syncthreads();
    }

    // Slices lie in the order of the threads' registers: every thread reads back what its namesakes have written.
    const int tile = blockIdx.y * gridDim.x + blockIdx.x;
    float* mine = part + (long long)tile * KS * BM * BN + tid;
    float* slice = mine + blockIdx.z * (BM * BN);
#pragma unroll
    for (int i = 0; i < 16; ++i) slice[i * 128] = acc[i / 4][i % 4];
    __threadfence();
    __syncthreads();
    if (tid == 0) last = atomicAdd(&tick[tile], 1) == KS - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();

    // Always in the same order, whichever block comes last, so that results repeat.
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = 0.0f;
        for (int z = 0; z < KS; ++z) sum += __ldcg(mine + z * (BM * BN) + i * 128);
        acc[i / 4][i % 4] = sum;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int col = n0 + wc + j * 8 + t * 2;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int r = m0 + wr + g + (e >> 1) * 8, c = col + (e & 1);
            if (r < M && c < N) out[(long long)r * N + c] = __float2half_rn(acc[j][e]);
        }
    }
}
