/* evoengine
name: gemm_producer_ring
precision: fp16
summary: producer warps fill a ring of tiles with cp.async, consumer warps multiply them; named barriers between both
tunables:
  BM: [64, 128]
  BN: [64, 128]
  BK: [32]
  STAGES: [3, 4, 2]
  PRODUCER_WARPS: [2, 1, 4]
  GROUP: [4, 8]                # rows of tiles that neighbouring blocks share, for the L2 cache
let:
  CONSUMER_WARPS: 4
  SLOT_BYTES: 2*BM*BK + 2*BK*BN
require:
  - STAGES * SLOT_BYTES <= MAX_SHARED_BYTES
  - BM * BN <= 8192
launches:
  - kernel: gemm_ring
    grid: ["ceil_div(M, BM) * ceil_div(N, BN)"]
    block: ["(CONSUMER_WARPS + PRODUCER_WARPS) * 32"]
    shared: STAGES * SLOT_BYTES
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <cstdint>

constexpr int kConsumers = 4 * 32, kProducers = PRODUCER_WARPS * 32, kAll = kConsumers + kProducers;
constexpr int WM = BM / 2, WN = BN / 2;       // the consumers form a 2 x 2 grid
constexpr int kLag = 1;                       // groups of copies that stay in flight while a producer goes on

struct Slot { __half a[BM * BK], b[BK * BN]; };

// Pieces of 16 bytes are permuted within a row, so that the eight rows of an ldmatrix lie in different banks.
__device__ __forceinline__ int a_at(int r, int piece) { return r * BK + ((piece ^ ((r >> 1) & 3)) << 3); }
__device__ __forceinline__ int b_at(int r, int piece) { return r * BN + ((piece ^ (r & 7)) << 3); }

__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void bar_sync(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kAll) : "memory"); }
__device__ __forceinline__ void bar_arrive(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kAll) : "memory"); }
__device__ __forceinline__ int full(int slot) { return 1 + slot; }
__device__ __forceinline__ int empty(int slot) { return 1 + STAGES + slot; }

template <int N> __device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Eight halves of a row-major matrix on their way to shared memory, zeros for what lies outside of it.
__device__ __forceinline__ void copy_piece(__half* dst, const __half* src, int rows, int cols, int r, int c) {
    if (cols % 8 == 0) {
        const bool inside = r < rows && c < cols;
        const __half* from = inside ? src + size_t(r) * cols + c : src;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(dst)), "l"(from), "r"(inside ? 16 : 0) : "memory");
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
        dst[i] = r < rows && c + i < cols ? src[size_t(r) * cols + c + i] : __float2half(0.0f);
}

__device__ void produce(Slot* ring, const __half* a, const __half* b, int M, int N, int K, int row0, int col0, int tid) {
    const int steps = (K + BK - 1) / BK;
    for (int step = 0; step < steps + kLag; ++step) {
        if (step < steps) {
            Slot& slot = ring[step % STAGES];
            if (step >= STAGES) bar_sync(empty(step % STAGES));
            for (int i = tid; i < BM * BK / 8; i += kProducers) {
                const int r = i / (BK / 8), p = i % (BK / 8);
                copy_piece(slot.a + a_at(r, p), a, M, K, row0 + r, step * BK + p * 8);
            }
            for (int i = tid; i < BK * BN / 8; i += kProducers) {
                const int r = i / (BN / 8), p = i % (BN / 8);
                copy_piece(slot.b + b_at(r, p), b, K, N, step * BK + r, col0 + p * 8);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");     // empty ones after the last step keep the count
        if (step >= kLag) {
            await_copies<kLag>();
            bar_arrive(full((step - kLag) % STAGES));
        }
    }
}

__global__ void __launch_bounds__(kAll)
gemm_ring(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) unsigned char raw[];
    Slot* ring = reinterpret_cast<Slot*>(raw);

    // Blocks go down GROUP rows of tiles before they turn to the next column.
    const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;
    const int first = blockIdx.x / (GROUP * tiles_n) * GROUP;
    const int height = min(GROUP, tiles_m - first);
    const int within = blockIdx.x % (GROUP * tiles_n);
    const int row0 = (first + within % height) * BM, col0 = within / height * BN;

    if (threadIdx.x >= kConsumers) {
        produce(ring, a, b, M, N, K, row0, col0, threadIdx.x - kConsumers);
        return;
    }

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int wr = warp / 2 * WM, wc = warp % 2 * WN;
    float acc[WM / 16][WN / 8][4] = {};
    const int steps = (K + BK - 1) / BK;
    for (int step = 0; step < steps; ++step) {
        const Slot& slot = ring[step % STAGES];
        bar_sync(full(step % STAGES));
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            uint32_t fa[WM / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                             : "r"(smem(slot.a + a_at(wr + i * 16 + lane % 16, k / 8 + lane / 16))) : "memory");
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) {
                uint32_t fb[4];
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                             : "r"(smem(slot.b + b_at(k + lane % 16, wc / 8 + j * 2 + lane / 16))) : "memory");
#pragma unroll
                for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        float* d = acc[i][j * 2 + h];
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                                     : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[h * 2]), "r"(fb[h * 2 + 1]));
                    }
            }
        }
        if (step + STAGES < steps) bar_arrive(empty(step % STAGES));     // nobody waits for the last ones
    }

#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int r = row0 + wr + i * 16 + h * 8 + lane / 4, c = col0 + wc + j * 8 + lane % 4 * 2;
                if (r >= M || c >= N) continue;
                __half* to = out + size_t(r) * N + c;
                const __half2 pair = __floats2half2_rn(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
                if (N % 2 == 0) *reinterpret_cast<__half2*>(to) = pair;
                else {
                    to[0] = __low2half(pair);
                    if (c + 1 < N) to[1] = __high2half(pair);
                }
            }
}
