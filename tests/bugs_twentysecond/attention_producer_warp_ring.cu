/* evoengine
name: attention_producer_warp_ring
precision: fp16
summary: a producer warp fills a ring of key and value tiles by cp.async, the other warps multiply; named barriers between them
tunables:
  CONSUMERS: [4, 2, 8]   # warps that multiply, with 16 query rows each
  STAGES: [3, 2, 4]      # tiles of 32 keys in the ring
let:
  pitch: 2*D + 16        # bytes: 16 more than a row holds, so that eight rows begin in different banks
require: ["STAGES <= 7"]   # two named barriers a stage; number 0 is __syncthreads
launches:
  - kernel: producerWarpRing<D, causal>
    grid: [B*H, "ceil_div(S, 16*CONSUMERS)"]
    block: [32*CONSUMERS + 32]
    shared: pitch*(16*CONSUMERS + 64*STAGES)
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
using u32 = unsigned int;
constexpr u32 kFullMask = 0xffffffffu;
constexpr int kTileKeys = 32, kThreads = 32 * CONSUMERS + 32;

// A barrier completes when every thread of the block has come, whether it waits there or only reports.
struct NamedBarrier {
    int id;
    __device__ __forceinline__ void wait() const { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory"); }
    __device__ __forceinline__ void report() const { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kThreads) : "memory"); }
};
__device__ __forceinline__ NamedBarrier filled(int stage) { return {1 + stage}; }
__device__ __forceinline__ NamedBarrier drained(int stage) { return {1 + STAGES + stage}; }
__device__ __forceinline__ void copy16(u32 to, const __half* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending> __device__ __forceinline__ void waitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory"); }
__device__ __forceinline__ void ldsm(u32 (&r)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void ldsmT(u32 (&r)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void hmma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 packHalves(float lo, float hi) {
    const __half2 h = __floats2half2_rn(lo, hi);
    return reinterpret_cast<const u32&>(h);
}

template <int D, bool isCausal>
__global__ void __launch_bounds__(kThreads)
producerWarpRing(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    constexpr u32 kPitch = 2 * D + 16, kTileBytes = kTileKeys * kPitch;
    constexpr int kPieces = D / 8;
    extern __shared__ __align__(128) unsigned char smem[];
    const u32 qBase = __cvta_generic_to_shared(smem), ringBase = qBase + 16 * CONSUMERS * kPitch;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blockRow = blockIdx.y * 16 * CONSUMERS;
    const size_t headOffset = size_t(blockIdx.x) * S * D;
    const int blockKeys = isCausal ? min(S, blockRow + 16 * CONSUMERS) : S;
    const int numTiles = (blockKeys + kTileKeys - 1) / kTileKeys;
    if (warp == CONSUMERS) {             // the producer
        for (int tile = 0; tile < numTiles; ++tile) {
            const int stage = tile % STAGES;
            const u32 kTile = ringBase + stage * 2 * kTileBytes, vTile = kTile + kTileBytes;
            if (tile >= STAGES) drained(stage).wait();
            for (int i = lane; i < kTileKeys * kPieces; i += 32) {
                const int row = i / kPieces, piece = i % kPieces, key = tile * kTileKeys + row;
                const bool inside = key < S;           // zeros beyond: 0 * NaN of stale memory would survive the mask
                const size_t from = headOffset + (inside ? size_t(key) * D + piece * 8 : 0);
                copy16(kTile + row * kPitch + piece * 16, k + from, inside);
                copy16(vTile + row * kPitch + piece * 16, v + from, inside);
            }
            commitCopies();
            if (tile > 0) {              // the tile before has arrived while this one was asked for
                waitCopies<1>();
                filled((tile - 1) % STAGES).report();
            }
        }
        waitCopies<0>();
        filled((numTiles - 1) % STAGES).report();
        return;
    }

    const int warpRow = blockRow + warp * 16, myRow = warpRow + lane / 4;
    const u32 qTile = qBase + warp * 16 * kPitch;
    for (int i = lane; i < 16 * kPieces; i += 32) {
        const int r = i / kPieces, c = i % kPieces;
        const __half* from = q + headOffset + size_t(warpRow + r) * D + c * 8;
        *reinterpret_cast<uint4*>(smem + (qTile - qBase) + r * kPitch + c * 16) = warpRow + r < S ? *reinterpret_cast<const uint4*>(from) : uint4{};
    }
    __syncwarp();
    u32 qFrag[D / 16][4];
    for (int d = 0; d < D / 16; ++d) ldsm(qFrag[d], qTile + lane % 16 * kPitch + d * 32 + lane / 16 * 16);

    const float scaleLog2 = scale * 1.4426950408889634f;
    float acc[D / 8][4] = {}, rowMax[2] = {-INFINITY, -INFINITY}, rowSum[2] = {0.0f, 0.0f};
    for (int tile = 0; tile < numTiles; ++tile) {
        const int stage = tile % STAGES, firstKey = tile * kTileKeys;
        const u32 kTile = ringBase + stage * 2 * kTileBytes, vTile = kTile + kTileBytes;
        filled(stage).wait();
        if (!isCausal || firstKey < warpRow + 16) {
            float s[4][4] = {};
            for (int d = 0; d < D / 16; ++d)
                for (int n = 0; n < 2; ++n) {
                    u32 b[4];            // keys 0-7 in b[0] and b[1], keys 8-15 in the others
                    ldsm(b, kTile + (n * 16 + lane % 8 + lane / 16 * 8) * kPitch + d * 32 + lane / 8 % 2 * 16);
                    hmma(s[2 * n], qFrag[d], b[0], b[1]);
                    hmma(s[2 * n + 1], qFrag[d], b[2], b[3]);
                }
            float newMax[2] = {rowMax[0], rowMax[1]};
            for (int i = 0; i < 16; ++i) {
                const int key = firstKey + i / 4 * 8 + lane % 4 * 2 + i % 2, half = i % 4 / 2;
                if (key >= S || (isCausal && key > myRow + 8 * half)) s[i / 4][i % 4] = -INFINITY;
                newMax[half] = fmaxf(newMax[half], s[i / 4][i % 4]);
            }
            for (int half = 0; half < 2; ++half)
                for (int step = 1; step < 4; step *= 2) newMax[half] = fmaxf(newMax[half], __shfl_xor_sync(kFullMask, newMax[half], step));
            if (__any_sync(kFullMask, newMax[0] > rowMax[0] || newMax[1] > rowMax[1])) {   // most later tiles bring no new maximum
                for (int half = 0; half < 2; ++half) {
                    const float shrink = exp2f((rowMax[half] - newMax[half]) * scaleLog2);
                    rowSum[half] *= shrink, rowMax[half] = newMax[half];
                    for (int n = 0; n < D / 8; ++n) acc[n][2 * half] *= shrink, acc[n][2 * half + 1] *= shrink;
                }
            }
            for (int i = 0; i < 16; ++i) rowSum[i % 4 / 2] += s[i / 4][i % 4] = exp2f((s[i / 4][i % 4] - rowMax[i % 4 / 2]) * scaleLog2);
            for (int j = 0; j < 2; ++j) {
                u32 p[4];
                for (int i = 0; i < 4; ++i) p[i] = packHalves(s[2 * j + i / 2][i % 2 * 2], s[2 * j + i / 2][i % 2 * 2 + 1]);
                for (int n = 0; n < D / 16; ++n) {
                    u32 b[4];
                    ldsmT(b, vTile + (j * 16 + lane % 16) * kPitch + n * 32 + lane / 16 * 16);
                    hmma(acc[2 * n], p, b[0], b[1]);
                    hmma(acc[2 * n + 1], p, b[2], b[3]);
                }
            }
        }
        if (tile + STAGES < numTiles) drained(stage).report();   // only where the producer will wait for it
    }
    for (int half = 0; half < 2; ++half) {
        float sum = rowSum[half];
        for (int step = 1; step < 4; step *= 2) sum += __shfl_xor_sync(kFullMask, sum, step);
        const int row = myRow + 8 * half;
        if (row < S)
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<u32*>(out + headOffset + size_t(row) * D + n * 8 + lane % 4 * 2) = packHalves(acc[n][2 * half] / sum, acc[n][2 * half + 1] / sum);
    }
}
