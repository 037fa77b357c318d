/* evoengine
name: persistent_producer_warp
precision: fp16
summary: persistent blocks in which one warp copies K and V for four that multiply, handed over at named barriers
tunables:
  KEYS: [32, 64]        # keys of a tile
  STAGES: [3, 2]        # tiles of K and V in shared memory
  LEAST_JOBS: [2, 1]    # jobs of a block, at least
let:
  ROW_BLOCKS: ceil_div(S, 64)
  JOBS: ROW_BLOCKS * B * H
launches:
  - kernel: attendPersistent<D, causal>
    grid: ["min(SM_COUNT, ceil_div(JOBS, LEAST_JOBS))"]
    block: [160]
    shared: 2 * (D + 8) * (64 + 2 * STAGES * KEYS)
    args: [q, k, v, out, S, ROW_BLOCKS, JOBS, scale]
*/
// A job is 64 query rows of a head. Warps 0 to 3 own 16 of them each; warp 4 runs ahead and fills a ring of tiles.
// FULL + stage: the copier has filled a stage. EMPTY + stage: all four have read it. Both count every warp.
#include <cuda_fp16.h>
constexpr int CONSUMER_WARPS = 4, JOB_ROWS = 16 * CONSUMER_WARPS, BLOCK_THREADS = 32 * (CONSUMER_WARPS + 1);
enum BarrierId { FULL = 1, EMPTY = FULL + STAGES };
__device__ __forceinline__ void barrierWait(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(BLOCK_THREADS) : "memory"); }
__device__ __forceinline__ void barrierArrive(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(BLOCK_THREADS) : "memory"); }
__device__ __forceinline__ void copyAsync16(__half* to, const __half* from, int bytes) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
template <int LEFT> __device__ __forceinline__ void awaitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
#define LOAD_FOUR_MATRICES(NAME, FORM)                                                                      \
    __device__ __forceinline__ void NAME(unsigned (&r)[4], const __half* at) {                              \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" FORM ".shared.b16 {%0,%1,%2,%3}, [%4];"                \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                       \
                     : "r"(unsigned(__cvta_generic_to_shared(at))) : "memory");                             \
    }
LOAD_FOUR_MATRICES(loadMatrices, "")
LOAD_FOUR_MATRICES(loadMatricesTransposed, ".trans")
__device__ __forceinline__ void multiplyAdd(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned asWord(__half2 pair) { return *reinterpret_cast<unsigned*>(&pair); }
struct Job {
    size_t headOffset;
    int firstRow, tileCount;
    __device__ Job(int index, int rowBlocks, int S, int D, bool causal) {
        headOffset = size_t(index / rowBlocks) * S * D, firstRow = index % rowBlocks * JOB_ROWS;
        tileCount = ((causal ? min(S, firstRow + JOB_ROWS) : S) + KEYS - 1) / KEYS;
    }
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(BLOCK_THREADS)
attendPersistent(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                 __half* __restrict__ out, int S, int rowBlocks, int jobs, float scale) {
    constexpr int PITCH = D + 8, CHUNKS = D / 8, TILE = KEYS * PITCH;
    extern __shared__ __align__(16) __half arena[];
    __half *keyRing = arena + JOB_ROWS * PITCH, *valueRing = keyRing + STAGES * TILE;
    const int warpId = threadIdx.x / 32, lane = threadIdx.x % 32;
    int step = 0;      // tiles since the start of the block; it names the stage and runs on from job to job

    if (warpId == CONSUMER_WARPS) {
        for (int index = blockIdx.x; index < jobs; index += gridDim.x) {
            const Job job(index, rowBlocks, S, D, CAUSAL);
            for (int tile = 0; tile < job.tileCount; ++tile, ++step) {
                const int stage = step % STAGES;
                if (step >= STAGES) barrierWait(EMPTY + stage);
                for (int i = lane; i < KEYS * CHUNKS; i += 32) {
                    const int r = i / CHUNKS, c = i % CHUNKS * 8, key = tile * KEYS + r;
                    const size_t from = job.headOffset + size_t(min(key, S - 1)) * D + c;
                    copyAsync16(keyRing + stage * TILE + r * PITCH + c, k + from, key < S ? 16 : 0);
                    copyAsync16(valueRing + stage * TILE + r * PITCH + c, v + from, key < S ? 16 : 0);
                }
                asm volatile("cp.async.commit_group;" ::: "memory");
                if (step > 0) {      // the tile before has had time to arrive while this one was requested
                    awaitCopies<1>();
                    barrierArrive(FULL + (step - 1) % STAGES);
                }
            }
        }
        awaitCopies<0>();
        barrierArrive(FULL + (step - 1) % STAGES);
        for (int i = max(0, step - STAGES); i < step; ++i) barrierWait(EMPTY + i % STAGES);      // no arrival is left behind
        return;
    }
    __half* staging = arena + warpId * 16 * PITCH;      // queries of this warp, in the end its results
    const float factor = scale * 1.4426950408889634f;
    for (int index = blockIdx.x; index < jobs; index += gridDim.x) {
        const Job job(index, rowBlocks, S, D, CAUSAL);
        const int warpRow = job.firstRow + warpId * 16, myRow = warpRow + lane / 4;
        for (int i = lane; i < 16 * CHUNKS; i += 32) {
            const int r = i / CHUNKS, c = i % CHUNKS * 8, row = min(warpRow + r, S - 1);
            *reinterpret_cast<uint4*>(staging + r * PITCH + c) = *reinterpret_cast<const uint4*>(q + job.headOffset + size_t(row) * D + c);
        }
        __syncwarp();
        unsigned query[D / 16][4];
        for (int c = 0; c < D / 16; ++c) loadMatrices(query[c], staging + lane % 16 * PITCH + c * 16 + lane / 16 * 8);
        float result[D / 8][4] = {}, rowMax[2] = {-INFINITY, -INFINITY}, rowSum[2] = {0.0f, 0.0f};
        for (int tile = 0; tile < job.tileCount; ++tile, ++step) {
            const int stage = step % STAGES, firstKey = tile * KEYS;
            const __half *keys = keyRing + stage * TILE, *values = valueRing + stage * TILE;
            barrierWait(FULL + stage);
            float score[KEYS / 8][4] = {};
            for (int n = 0; n < KEYS / 16; ++n)
                for (int c = 0; c < D / 16; ++c) {
                    unsigned b[4];
                    loadMatrices(b, keys + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH + c * 16 + lane / 8 % 2 * 8);
                    multiplyAdd(score[2 * n], query[c], b[0], b[1]);
                    multiplyAdd(score[2 * n + 1], query[c], b[2], b[3]);
                }
            // Most tiles lie wholly below the diagonal and before the end: they need no mask.
            if (firstKey + KEYS > S || (CAUSAL && firstKey + KEYS - 1 > warpRow))
                for (int i = 0; i < KEYS / 8 * 4; ++i) {
                    const int key = firstKey + i / 4 * 8 + lane % 4 * 2 + i % 2, row = myRow + i % 4 / 2 * 8;
                    if (key >= S || (CAUSAL && key > row)) score[i / 4][i % 4] = -INFINITY;
                }
            for (int h = 0; h < 2; ++h) {
                float top = rowMax[h];
                for (int n = 0; n < KEYS / 8; ++n) top = fmaxf(top, fmaxf(score[n][2 * h], score[n][2 * h + 1]));
                for (int mask = 1; mask <= 2; mask *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask));
                const float shrink = exp2f((rowMax[h] - top) * factor);      // every row sees key 0, so top is finite
                rowMax[h] = top, rowSum[h] *= shrink;
                for (int n = 0; n < KEYS / 8; ++n)
                    for (int e = 2 * h; e < 2 * h + 2; ++e) rowSum[h] += score[n][e] = exp2f((score[n][e] - top) * factor);
                for (int n = 0; n < D / 8; ++n) result[n][2 * h] *= shrink, result[n][2 * h + 1] *= shrink;
            }
            for (int j = 0; j < KEYS / 16; ++j) {
                unsigned weight[4];
                for (int i = 0; i < 4; ++i)
                    weight[i] = asWord(__floats2half2_rn(score[2 * j + i / 2][i % 2 * 2], score[2 * j + i / 2][i % 2 * 2 + 1]));
                for (int n = 0; n < D / 16; ++n) {
                    unsigned b[4];
                    loadMatricesTransposed(b, values + (j * 16 + lane % 16) * PITCH + n * 16 + lane / 16 * 8);
                    multiplyAdd(result[2 * n], weight, b[0], b[1]);
                    multiplyAdd(result[2 * n + 1], weight, b[2], b[3]);
                }
            }
            barrierArrive(EMPTY + stage);
        }
        for (int h = 0; h < 2; ++h) {
            for (int mask = 1; mask <= 2; mask *= 2) rowSum[h] += __shfl_xor_sync(0xffffffffu, rowSum[h], mask);
            const float inverse = 1.0f / rowSum[h];
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2*>(staging + (lane / 4 + h * 8) * PITCH + n * 8 + lane % 4 * 2) =
                    __floats2half2_rn(result[n][2 * h] * inverse, result[n][2 * h + 1] * inverse);
        }
        __syncwarp();      // whole rows leave in pieces of 16 bytes, which other lanes have put together
        for (int i = lane; i < 16 * CHUNKS; i += 32) {
            const int r = i / CHUNKS, c = i % CHUNKS * 8;
            if (warpRow + r >= S) break;
            *reinterpret_cast<uint4*>(out + job.headOffset + size_t(warpRow + r) * D + c) = *reinterpret_cast<const uint4*>(staging + r * PITCH + c);
        }
        __syncwarp();
    }
}
