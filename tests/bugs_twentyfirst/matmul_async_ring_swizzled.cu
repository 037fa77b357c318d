/* evoengine
name: matmul_async_ring_swizzled
precision: fp16
summary: mma.sync fed by ldmatrix from a ring of swizzled tiles that cp.async fills
tunables:
  BM: [64, 128]
  BN: [64, 128]
  STAGES: [3, 4, 2]
  GROUP: [8, 4]      # rows of tiles that are walked together, so that their parts of b stay in the L2 cache
let:
  FAST: 1 if K % 8 == 0 and N % 8 == 0 else 0
  STAGE_BYTES: 2 * 32 * (BM + BN)
  BLOCKS: ceil_div(M, BM) * ceil_div(N, BN)
require:
  - STAGES * STAGE_BYTES <= MAX_SHARED_BYTES
launches:
  - kernel: gemm<FAST>
    grid: [BLOCKS]
    block: [128]
    shared: STAGES * STAGE_BYTES
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
using u32 = unsigned int;

constexpr int BK = 32, TPB = 128;
constexpr int WM = BM / 2, WN = BN / 2;      // four warps, two by two
constexpr int MT = WM / 16, NT = WN / 8;     // mma tiles of a warp

// Chunks of 16 bytes are permuted within a row so that eight rows of one chunk lie in different banks.
__device__ __forceinline__ int offA(int r, int chunk) { return r * BK + ((chunk ^ ((r >> 1) & 3)) << 3); }
__device__ __forceinline__ int offB(int r, int chunk) { return r * BN + ((chunk ^ (r & 7)) << 3); }
__device__ __forceinline__ u32 smemAddr(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// Eight halves of a row-major matrix to shared memory; what lies outside the matrix becomes zero.
template <int Fast>
__device__ __forceinline__ void copyChunk(__half* dst, const __half* __restrict__ src, int nRow, int nCol, int r, int c) {
    if constexpr (Fast) {
        const bool inside = r < nRow && c < nCol;
        const __half* from = inside ? src + size_t(r) * nCol + c : src;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(smemAddr(dst)), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            dst[i] = r < nRow && c + i < nCol ? src[size_t(r) * nCol + c + i] : __float2half(0.f);
    }
}

template <int Fast>
__device__ __forceinline__ void loadStage(__half* sA, __half* sB, const __half* a, const __half* b, int M, int N, int K, int m0, int n0, int k0) {
    for (int i = threadIdx.x; i < BM * (BK / 8); i += TPB) {
        const int r = i / (BK / 8), ch = i % (BK / 8);
        copyChunk<Fast>(sA + offA(r, ch), a, M, K, m0 + r, k0 + ch * 8);
    }
    for (int i = threadIdx.x; i < BK * (BN / 8); i += TPB) {
        const int r = i / (BN / 8), ch = i % (BN / 8);
        copyChunk<Fast>(sB + offB(r, ch), b, K, N, k0 + r, n0 + ch * 8);
    }
}

__device__ __forceinline__ void ldsm4(u32 (&f)[4], u32 addr) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void ldsm4t(u32 (&f)[4], u32 addr) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 pack(float x, float y) {
    const __half2 h = __floats2half2_rn(x, y);
    return *reinterpret_cast<const u32*>(&h);
}

template <int Fast>
__global__ void __launch_bounds__(TPB)
gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) __half ring[];
    constexpr int STAGE = BK * (BM + BN);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int wm = (warp >> 1) * WM, wn = (warp & 1) * WN;

    const int tilesM = (M + BM - 1) / BM, tilesN = (N + BN - 1) / BN;
    const int bid = blockIdx.x, perGroup = GROUP * tilesN;
    const int firstM = bid / perGroup * GROUP;
    const int groupRows = min(tilesM - firstM, GROUP);      // the last group may have fewer
    const int m0 = (firstM + bid % perGroup % groupRows) * BM;
    const int n0 = bid % perGroup / groupRows * BN;

    float acc[MT][NT][4] = {};
    const int steps = (K + BK - 1) / BK;

    // A group of copies is committed every step, even an empty one: then the number of groups in flight is known.
    for (int s = 0; s < STAGES - 1; ++s) {
        __half* st = ring + s * STAGE;
        if (s < steps) loadStage<Fast>(st, st + BM * BK, a, b, M, N, K, m0, n0, s * BK);
        asm volatile("cp.async.commit_group;\n" ::: "memory");
    }
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2) : "memory");
        __syncthreads();     // the tile of this step is complete, and that of the last step is free
        const int ahead = step + STAGES - 1;
        if (ahead < steps) {
            __half* st = ring + ahead % STAGES * STAGE;
            loadStage<Fast>(st, st + BM * BK, a, b, M, N, K, m0, n0, ahead * BK);
        }
        asm volatile("cp.async.commit_group;\n" ::: "memory");
        const __half* sA = ring + step % STAGES * STAGE;
        const __half* sB = sA + BM * BK;
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            u32 fa[MT][4];
#pragma unroll
            for (int i = 0; i < MT; ++i) ldsm4(fa[i], smemAddr(sA + offA(wm + i * 16 + lane % 16, kk / 8 + lane / 16)));
#pragma unroll
            for (int j = 0; j < NT; j += 2) {
                u32 fb[4];      // sixteen columns: the upper and the lower half of k of the first eight, then of the others
                ldsm4t(fb, smemAddr(sB + offB(kk + lane % 16, (wn + j * 8) / 8 + lane / 16)));
#pragma unroll
                for (int i = 0; i < MT; ++i) {
                    mma(acc[i][j], fa[i], fb[0], fb[1]);
                    mma(acc[i][j + 1], fa[i], fb[2], fb[3]);
                }
            }
        }
    }

    // Two neighbours swap a pair each: the even lane then has four columns of the upper row, the odd one those of the lower.
    const bool odd = lane & 1;
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j) {
            const u32 top = pack(acc[i][j][0], acc[i][j][1]), bottom = pack(acc[i][j][2], acc[i][j][3]);
            const u32 got = __shfl_xor_sync(0xffffffffu, odd ? top : bottom, 1);
            const uint2 four = odd ? make_uint2(got, bottom) : make_uint2(top, got);
            const int r = m0 + wm + i * 16 + lane / 4 + (odd ? 8 : 0);
            const int c = n0 + wn + j * 8 + (lane & 2) * 2;
            if (r >= M) continue;
            __half* to = out + size_t(r) * N + c;
            if (Fast) {
                if (c < N) *reinterpret_cast<uint2*>(to) = four;
            } else {
                const __half* h = reinterpret_cast<const __half*>(&four);
                for (int e = 0; e < 4; ++e)
                    if (c + e < N) to[e] = h[e];
            }
        }
}
