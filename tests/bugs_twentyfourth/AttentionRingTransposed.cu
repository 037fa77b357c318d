/* evoengine
name: AttentionRingTransposed
precision: fp16
summary: a loading warp feeds a ring of key and value tiles; four computing warps form transposed scores and a transposed output
tunables:
  STAGES: [2, 3]
let:
  SHARED: "2 * (D + 8) * (64 + STAGES * 2 * 32) + 2 * 64 * (32 + 8)"
require: [SHARED <= MAX_SHARED_BYTES]
launches:
  - kernel: ringAttention<D, causal>
    grid: ["ceil_div(S, 64)", H, B]
    block: [160]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
// Scores are formed as K * Q^T and the output as V^T * P^T. A query is then a column of both
// accumulators and lies in the same lanes in both, so what belongs to a query (its maximum, its sum,
// the factor by which its output shrinks) never has to travel between lanes.
#include <cuda_fp16.h>

namespace {
constexpr int kWarps = 4, kQueriesPerWarp = 16, kQueries = kWarps * kQueriesPerWarp, kKeys = 32;
constexpr int kPitchP = kKeys + 8;                       // of the weights, in halves
constexpr int kRingThreads = (kWarps + 1) * 32;          // the loading warp takes part in every barrier
#define kNegInf __int_as_float(0xff800000)

enum BarrierBase { Full = 1, Empty = 1 + STAGES };       // barrier 0 is that of __syncthreads

__device__ __forceinline__ void barrierWait(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kRingThreads) : "memory"); }
__device__ __forceinline__ void barrierSignal(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kRingThreads) : "memory"); }
__device__ __forceinline__ unsigned sharedAddress(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

struct Quad { unsigned r[4]; };
template <bool Transposed> __device__ __forceinline__ Quad loadMatrices(const __half* from) {
    Quad m;
    if constexpr (Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(m.r[0]), "=r"(m.r[1]), "=r"(m.r[2]), "=r"(m.r[3]) : "r"(sharedAddress(from)) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(m.r[0]), "=r"(m.r[1]), "=r"(m.r[2]), "=r"(m.r[3]) : "r"(sharedAddress(from)) : "memory");
    return m;
}
__device__ __forceinline__ void multiplyAdd(float (&c)[4], const Quad& a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

// One warp copies rows [first, first + Rows) of a head; rows that do not exist become zeros.
template <int HeadDim, int Rows> __device__ __forceinline__ void copyRowsAsync(__half* tile, const __half* head, int first, int S, int lane) {
    constexpr int kPieces = HeadDim / 8, kPitch = HeadDim + 8;
#pragma unroll 4
    for (int i = lane; i < Rows * kPieces; i += 32) {
        const int row = i / kPieces, piece = i % kPieces;
        const int sourceRow = min(first + row, S - 1);   // an address within the tensor in any case
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAddress(tile + row * kPitch + piece * 8)),
                     "l"(head + size_t(sourceRow) * HeadDim + piece * 8), "r"(first + row < S ? 16 : 0) : "memory");
    }
}
}  // namespace

template <int HeadDim, bool IsCausal>
__global__ void __launch_bounds__(kRingThreads)
ringAttention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    constexpr int kPitch = HeadDim + 8, kTile = kKeys * kPitch;
    extern __shared__ __align__(128) __half memory[];
    __half* const keyRing = memory;                                // [STAGES][kKeys][kPitch]
    __half* const valueRing = keyRing + STAGES * kTile;            // the same
    __half* const queryRows = valueRing + STAGES * kTile;          // [kQueries][kPitch], later the output
    __half* const weightRows = queryRows + kQueries * kPitch;      // [kQueries][kPitchP]

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t head = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * HeadDim;
    const int blockQuery = blockIdx.x * kQueries;
    const int keyEnd = IsCausal ? min(S, blockQuery + kQueries) : S;
    const int tiles = (keyEnd + kKeys - 1) / kKeys;

    if (warp == kWarps) {   // the loading warp: one tile is on its way while the one before it is announced
        for (int t = 0; t <= tiles; ++t) {
            if (t < tiles) {
                const int slot = t % STAGES;
                if (t >= STAGES) barrierWait(Empty + slot);
                copyRowsAsync<HeadDim, kKeys>(keyRing + slot * kTile, k + head, t * kKeys, S, lane);
                copyRowsAsync<HeadDim, kKeys>(valueRing + slot * kTile, v + head, t * kKeys, S, lane);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            if (t > 0) barrierSignal(Full + (t - 1) % STAGES);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }

    const int firstQuery = blockQuery + warp * kQueriesPerWarp;
    __half* const myQueries = queryRows + warp * kQueriesPerWarp * kPitch;
    __half* const myWeights = weightRows + warp * kQueriesPerWarp * kPitchP;
    copyRowsAsync<HeadDim, kQueriesPerWarp>(myQueries, q + head, firstQuery, S, lane);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();

    // Of an accumulator a lane has row lane / 4 (and + 8) and columns 2 * (lane % 4) (and + 1).
    const int laneRow = lane >> 2, laneColumn = (lane & 3) << 1;
    const int rowsFirst = lane % 16, columnsFirst = lane / 16 * 8;                 // order of matrices: down, then right
    const int acrossRow = lane % 8 + lane / 16 * 8, acrossColumn = lane / 8 % 2 * 8;   // right, then down
    const float factor = scale * 1.4426950408889634f;
    float o[HeadDim / 16][2][4] = {};
    float rowMax[2][2] = {{kNegInf, kNegInf}, {kNegInf, kNegInf}}, rowSum[2][2] = {};

    for (int t = 0; t < tiles; ++t) {
        const int slot = t % STAGES, firstKey = t * kKeys;
        const __half* const keyTile = keyRing + slot * kTile;
        const __half* const valueTile = valueRing + slot * kTile;
        barrierWait(Full + slot);
        if (!IsCausal || firstKey < firstQuery + kQueriesPerWarp) {
            float s[kKeys / 16][2][4] = {};
#pragma unroll
            for (int d = 0; d < HeadDim; d += 16) {
                const Quad b = loadMatrices<false>(myQueries + acrossRow * kPitch + d + acrossColumn);
#pragma unroll
                for (int i = 0; i < kKeys / 16; ++i) {
                    const Quad a = loadMatrices<false>(keyTile + (i * 16 + rowsFirst) * kPitch + d + columnsFirst);
                    multiplyAdd(s[i][0], a, b.r[0], b.r[1]);
                    multiplyAdd(s[i][1], a, b.r[2], b.r[3]);
                }
            }
            float shrink[2][2];
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const int column = j * 8 + laneColumn + c;
                    const int visible = IsCausal ? min(S, firstQuery + column + 1) : S;
                    float top = rowMax[j][c];
#pragma unroll
                    for (int i = 0; i < kKeys / 8; ++i) {
                        float& x = s[i / 2][j][i % 2 * 2 + c];
                        x = firstKey + i * 8 + laneRow < visible ? x * factor : kNegInf;
                        top = fmaxf(top, x);
                    }
#pragma unroll
                    for (int step = 4; step < 32; step *= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
                    shrink[j][c] = exp2f(rowMax[j][c] - top);    // key 0 is in the first tile: top is finite
                    rowMax[j][c] = top;
                    rowSum[j][c] *= shrink[j][c];
#pragma unroll
                    for (int i = 0; i < kKeys / 8; ++i) {
                        const __half p = __float2half_rn(exp2f(s[i / 2][j][i % 2 * 2 + c] - top));
                        rowSum[j][c] += __half2float(p);         // of the weights as they are multiplied
                        myWeights[column * kPitchP + i * 8 + laneRow] = p;
                    }
                }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < HeadDim / 16 * 8; ++i) o[i / 8][i / 4 % 2][i % 4] *= shrink[i / 4 % 2][i % 2];
#pragma unroll
            for (int n = 0; n < kKeys; n += 16) {
                const Quad b = loadMatrices<false>(myWeights + acrossRow * kPitchP + n + acrossColumn);
#pragma unroll
                for (int i = 0; i < HeadDim / 16; ++i) {
                    const Quad a = loadMatrices<true>(valueTile + (n + acrossRow) * kPitch + i * 16 + acrossColumn);
                    multiplyAdd(o[i][0], a, b.r[0], b.r[1]);
                    multiplyAdd(o[i][1], a, b.r[2], b.r[3]);
                }
            }
            __syncwarp();   // the weights have been read by all lanes before the next ones are written
        }
        if (t + STAGES < tiles) barrierSignal(Empty + slot);   // later tiles are not waited for
    }

#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            float sum = rowSum[j][c];
            for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
            const float inverse = __fdividef(1.0f, sum);
#pragma unroll
            for (int i = 0; i < HeadDim / 8; ++i)
                myQueries[(j * 8 + laneColumn + c) * kPitch + i * 8 + laneRow] = __float2half_rn(o[i / 2][j][i % 2 * 2 + c] * inverse);
        }
    __syncwarp();           // the output lies where the queries were, a query a row again
    for (int i = lane; i < kQueriesPerWarp * HeadDim / 8; i += 32) {
        const int row = i / (HeadDim / 8), channel = i % (HeadDim / 8) * 8;
        if (firstQuery + row < S)
            *reinterpret_cast<uint4*>(out + head + size_t(firstQuery + row) * HeadDim + channel) = *reinterpret_cast<const uint4*>(myQueries + row * kPitch + channel);
    }
}
