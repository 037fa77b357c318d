/* evoengine
name: fjord_depth_shares
precision: fp16
summary: persistent blocks over grouped tiles and shares of the depth, cp.async ring with XOR swizzle, a second launch adds the shares
tunables:
  SHARES: [2, 1, 4]        # parts of the depth, summed by the second launch
  DEPTH_STAGES: [3, 4]
  GROUP: [4, 8, 2]         # tile rows that are walked together, for the L2
  TILES_A_BLOCK: [2, 1, 4]
  ADD_THREADS: [128, 256]
let:
  WA: 8 if K % 8 == 0 else 2 if K % 2 == 0 else 1    # halves of one copy
  WB: 8 if N % 8 == 0 else 2 if N % 2 == 0 else 1
  WO: 4 if N % 4 == 0 else 1
  TM: ceil_div(M, 64)
  TN: ceil_div(N, 64)
  JOBS: TM*TN*SHARES
  STEPS: ceil_div(ceil_div(K, 32), SHARES)           # of a share
scratch:
  shares: {dtype: float32, shape: [SHARES, M, N]}
launches:
  - kernel: multiply<WA, WB>
    grid: ["ceil_div(JOBS, TILES_A_BLOCK)"]
    block: [128]
    shared: DEPTH_STAGES*8192
    args: [a, b, shares, M, N, K, TM, TN, STEPS]
  - kernel: add_up<WO>
    grid: ["ceil_div(M*N, WO*ADD_THREADS)"]
    block: [ADD_THREADS]
    args: [shares, out, "M*N"]
*/
// Tiles of 64 x 64 x 32; four warps in a 2 x 2 square, 32 x 32 of the output each.
// A copy moves W halves: 8 where rows are whole vectors, 2 where they are even, else 1 through a register.
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 32, THREADS = 128;
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = A_BYTES + BK * BN * 2;

// Byte offset of half (r, c). A row of `a` has 4 chunks of 16 bytes, two rows fill the banks; one of `b` has 8.
__device__ __forceinline__ int offset_a(int r, int c) { return r * 64 + (((c >> 3) ^ ((r >> 1) & 3)) << 4) + (c & 7) * 2; }
__device__ __forceinline__ int offset_b(int r, int c) { return r * 128 + (((c >> 3) ^ (r & 7)) << 4) + (c & 7) * 2; }

template <int W>
__device__ __forceinline__ void move(unsigned char* smem, int offset, const __half* from, bool inside) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(smem + offset));
    if constexpr (W == 8) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else if constexpr (W == 2) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(inside ? 4 : 0) : "memory");
    } else {
        *reinterpret_cast<__half*>(smem + offset) = inside ? *from : __ushort_as_half(0);
    }
}

// One stage: a[row0.., k0..] and b[k0.., col0..], zeros outside of the matrices and beyond the share.
template <int WA, int WB>
__device__ __forceinline__ void load_stage(unsigned char* stage, const __half* a, const __half* b, int M, int N, int K,
                                           int row0, int col0, int k0) {
#pragma unroll 4
    for (int i = threadIdx.x; i < BM * BK / WA; i += THREADS) {
        const int r = i / (BK / WA), c = i % (BK / WA) * WA;
        const bool inside = row0 + r < M && k0 + c < K;
        move<WA>(stage, offset_a(r, c), inside ? a + size_t(row0 + r) * K + k0 + c : a, inside);
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < BK * BN / WB; i += THREADS) {
        const int r = i / (BN / WB), c = i % (BN / WB) * WB;
        const bool inside = k0 + r < K && col0 + c < N;
        move<WB>(stage + A_BYTES, offset_b(r, c), inside ? b + size_t(k0 + r) * N + col0 + c : b, inside);
    }
}

__device__ __forceinline__ void load_a(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void load_b(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int WA, int WB>
__global__ void __launch_bounds__(THREADS)
multiply(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ shares, int M, int N, int K,
         int tiles_m, int tiles_n, int steps) {
    extern __shared__ __align__(128) unsigned char ring[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int wr = warp / 2 * 32, wc = warp % 2 * 32;
    const int tiles = tiles_m * tiles_n;

    for (int job = blockIdx.x; job < tiles * SHARES; job += gridDim.x) {
        const int share = job / tiles, tile = job % tiles;
        const int in_group = tile % (GROUP * tiles_n), group_row = tile / (GROUP * tiles_n) * GROUP;
        const int height = min(GROUP, tiles_m - group_row);    // the last group may be lower
        const int row0 = (group_row + in_group % height) * BM, col0 = in_group / height * BN;
        const int depth = share * steps * BK;

        float sum[2][4][4] = {};
#pragma unroll
        for (int s = 0; s < DEPTH_STAGES - 1; ++s) {
            if (s < steps) load_stage<WA, WB>(ring + s * STAGE_BYTES, a, b, M, N, K, row0, col0, depth + s * BK);
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
        for (int step = 0; step < steps; ++step) {
            asm volatile("cp.async.wait_group %0;" ::"n"(DEPTH_STAGES - 2) : "memory");
            __syncthreads();
            const int ahead = step + DEPTH_STAGES - 1;
            if (ahead < steps)
                load_stage<WA, WB>(ring + ahead % DEPTH_STAGES * STAGE_BYTES, a, b, M, N, K, row0, col0, depth + ahead * BK);
            asm volatile("cp.async.commit_group;" ::: "memory");

            const unsigned sa = static_cast<unsigned>(__cvta_generic_to_shared(ring + step % DEPTH_STAGES * STAGE_BYTES));
            const unsigned sb = sa + A_BYTES;
#pragma unroll
            for (int kk = 0; kk < BK; kk += 16) {
                unsigned fa[2][4];
#pragma unroll
                for (int i = 0; i < 2; ++i) load_a(fa[i], sa + offset_a(wr + i * 16 + lane % 16, kk + lane / 16 * 8));
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    unsigned fb[4];
                    load_b(fb, sb + offset_b(kk + lane % 16, wc + j * 16 + lane / 16 * 8));
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        multiply_add(sum[i][2 * j], fa[i], fb[0], fb[1]);
                        multiply_add(sum[i][2 * j + 1], fa[i], fb[2], fb[3]);
                    }
                }
            }
        }
        __syncthreads();    // the ring is free for the next job

        float* target = shares + size_t(share) * M * N;
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int r = row0 + wr + i * 16 + lane / 4 + h * 8, c = col0 + wc + j * 8 + lane % 4 * 2;
                    if (r >= M) continue;
                    float* to = target + size_t(r) * N + c;
                    if (WB > 1) {    // an even row: a pair is inside or outside as a whole
                        if (c < N) *reinterpret_cast<float2*>(to) = make_float2(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
                    } else {
                        if (c < N) to[0] = sum[i][j][2 * h];
                        if (c + 1 < N) to[1] = sum[i][j][2 * h + 1];
                    }
                }
    }
}

template <int W>
__global__ void __launch_bounds__(ADD_THREADS)
add_up(const float* __restrict__ shares, __half* __restrict__ out, int count) {
    const int at = (blockIdx.x * ADD_THREADS + threadIdx.x) * W;
    if (at >= count) return;
    if constexpr (W == 4) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int s = 0; s < SHARES; ++s) {
            const float4 x = *reinterpret_cast<const float4*>(shares + size_t(s) * count + at);
            sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
        }
        const __half2 pairs[2] = {__floats2half2_rn(sum.x, sum.y), __floats2half2_rn(sum.z, sum.w)};
        *reinterpret_cast<uint2*>(out + at) = *reinterpret_cast<const uint2*>(pairs);
    } else {
        float sum = 0.0f;
        for (int s = 0; s < SHARES; ++s) sum += shares[size_t(s) * count + at];
        out[at] = __float2half_rn(sum);
    }
}
