/* evoengine
name: attention_ring_of_tiles
precision: fp16
summary: one warp fills a ring of K and V tiles, four warps use them with four lanes a query row
tunables:
  KEYS: [32, 16, 64]     # keys of a tile
  RING: [3, 2, 4]        # tiles in shared memory
let:
  TILES: ceil_div(S, 32)
require: [4*RING*KEYS*D <= MAX_SHARED_BYTES]
launches:
  - kernel: attentionRing<D, causal>
    grid: ["ceil_div(TILES, 2)", B*H]
    block: [160]
    shared: 4*RING*KEYS*D
    args: [q, k, v, out, S, TILES, scale]
*/
// A block computes two tiles of 32 query rows, one from the front and one from the back: with a causal mask the long
// one and the short one together cost the same in every block. The ring goes on turning from the first to the second.
#include <cuda_fp16.h>

constexpr int kRows = 32, kUsers = 128, kThreads = kUsers + 32;
constexpr int kTogether = 8;                       // keys whose scores are exponentiated together
constexpr int kFilled = 1, kFree = 1 + RING;       // first named barrier of each kind; barrier 0 is __syncthreads

__device__ __forceinline__ void barWait(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory"); }
__device__ __forceinline__ void barArrive(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kThreads) : "memory"); }

// Where the ring stands: which tile is next, and in which slot it lies.
struct RingPosition {
    int turn = 0;
    __device__ int slot() const { return turn % RING; }
    __device__ bool secondLap() const { return turn >= RING; }
};

__device__ __forceinline__ void unpackEight(float (&to)[8], const uint4& from) {
    const half2* pairs = reinterpret_cast<const half2*>(&from);
    for (int i = 0; i < 4; ++i) {
        const float2 both = __half22float2(pairs[i]);
        to[2 * i] = both.x;
        to[2 * i + 1] = both.y;
    }
}

template <int D>
__device__ void fillTile(uint4* tile, const half* __restrict__ kHead, const half* __restrict__ vHead, int firstKey, int end) {
    constexpr int kPieces = D / 8;
    const int lane = threadIdx.x % 32;
    for (int i = lane; i < KEYS * kPieces; i += 32) {
        const int key = firstKey + i / kPieces;
        const size_t at = size_t(key) * D + i % kPieces * 8;
        const uint4 zero = make_uint4(0, 0, 0, 0);     // stale bits could be NaN, which a weight of zero does not remove
        tile[i] = key < end ? *reinterpret_cast<const uint4*>(kHead + at) : zero;
        tile[KEYS * kPieces + i] = key < end ? *reinterpret_cast<const uint4*>(vHead + at) : zero;
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(kThreads)
attentionRing(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
              int rowTiles, float scale) {
    constexpr int kPieces = D / 8, kOwn = D / 32;           // 16-byte pieces of a row, and of a lane
    extern __shared__ __align__(16) unsigned char shared[];
    uint4* ring = reinterpret_cast<uint4*>(shared);         // [RING][K, V][KEYS][kPieces]
    const size_t head = size_t(blockIdx.y) * S * D;
    const int mirrored = rowTiles - 1 - blockIdx.x;
    const int rounds = mirrored == int(blockIdx.x) ? 1 : 2;      // the tile in the middle is its own mirror image
    RingPosition at;

    if (threadIdx.x >= kUsers) {
        for (int round = 0; round < rounds; ++round) {
            const int firstRow = (round == 0 ? blockIdx.x : mirrored) * kRows;
            const int end = CAUSAL ? min(S, firstRow + kRows) : S;
            for (int firstKey = 0; firstKey < end; firstKey += KEYS, ++at.turn) {
                if (at.secondLap()) barWait(kFree + at.slot());
                fillTile<D>(ring + at.slot() * 2 * KEYS * kPieces, k + head, v + head, firstKey, end);
                barArrive(kFilled + at.slot());
            }
        }
        // What the users still report is waited for: no barrier is left half full.
        for (int turn = max(0, at.turn - RING); turn < at.turn; ++turn) barWait(kFree + turn % RING);
        return;
    }

    const int quarter = threadIdx.x % 4;                    // the lane has pieces quarter, quarter + 4, ... of its row
    for (int round = 0; round < rounds; ++round) {
        const int firstRow = (round == 0 ? blockIdx.x : mirrored) * kRows, row = firstRow + threadIdx.x / 4;
        const int end = CAUSAL ? min(S, firstRow + kRows) : S;
        const float factor = scale * 1.4426950408889634f;
        float query[kOwn][8], sums[kOwn][8] = {};
#pragma unroll
        for (int p = 0; p < kOwn; ++p) {
            uint4 bits = make_uint4(0, 0, 0, 0);
            if (row < S) bits = *reinterpret_cast<const uint4*>(q + head + size_t(row) * D + (p * 4 + quarter) * 8);
            unpackEight(query[p], bits);
            for (int i = 0; i < 8; ++i) query[p][i] *= factor;
        }
        float top = __int_as_float(0xff800000), weightSum = 0.0f;

        for (int firstKey = 0; firstKey < end; firstKey += KEYS, ++at.turn) {
            barWait(kFilled + at.slot());
            const uint4* kTile = ring + at.slot() * 2 * KEYS * kPieces;
            const uint4* vTile = kTile + KEYS * kPieces;
            for (int n = 0; n < KEYS; n += kTogether) {
                float score[kTogether], newTop = top;
#pragma unroll
                for (int j = 0; j < kTogether; ++j) {
                    float dot = 0.0f, key[8];
#pragma unroll
                    for (int p = 0; p < kOwn; ++p) {
                        unpackEight(key, kTile[(n + j) * kPieces + p * 4 + quarter]);
                        for (int i = 0; i < 8; ++i) dot = fmaf(query[p][i], key[i], dot);
                    }
                    dot += __shfl_xor_sync(0xffffffffu, dot, 1);
                    dot += __shfl_xor_sync(0xffffffffu, dot, 2);
                    const int index = firstKey + n + j;
                    score[j] = index < end && (!CAUSAL || index <= row) ? dot : __int_as_float(0xff800000);
                    newTop = fmaxf(newTop, score[j]);
                }
                const float shrink = exp2f(top - newTop);   // key 0 is visible to every row: newTop is finite
                top = newTop;
                weightSum *= shrink;
                for (int i = 0; i < kOwn * 8; ++i) sums[i / 8][i % 8] *= shrink;
#pragma unroll
                for (int j = 0; j < kTogether; ++j) {
                    const float weight = exp2f(score[j] - newTop);
                    weightSum += weight;
                    float value[8];
#pragma unroll
                    for (int p = 0; p < kOwn; ++p) {
                        unpackEight(value, vTile[(n + j) * kPieces + p * 4 + quarter]);
                        for (int i = 0; i < 8; ++i) sums[p][i] = fmaf(weight, value[i], sums[p][i]);
                    }
                }
            }
            barArrive(kFree + at.slot());
        }

        if (row >= S) continue;
        const float inverse = 1.0f / weightSum;
#pragma unroll
        for (int p = 0; p < kOwn; ++p) {
            uint4 bits;
            half2* pairs = reinterpret_cast<half2*>(&bits);
            for (int i = 0; i < 4; ++i) pairs[i] = __floats2half2_rn(sums[p][2 * i] * inverse, sums[p][2 * i + 1] * inverse);
            *reinterpret_cast<uint4*>(out + head + size_t(row) * D + (p * 4 + quarter) * 8) = bits;
        }
    }
}
