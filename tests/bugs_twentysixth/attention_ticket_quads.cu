/* evoengine
name: attention_ticket_quads
precision: fp16
summary: persistent blocks draw tiles of rows by ticket; four lanes share a query row, and the next keys wait in registers
tunables:
  ROWS: [32, 64]            # query rows of a tile, four threads each
  KEYS: [16, 32]            # keys of a stage
  BLOCKS_PER_SM: [4, 2, 8]
let:
  ROW_TILES: ceil_div(S, ROWS)
  TILES: ROW_TILES * B * H
scratch:
  ticket: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: attention<D, causal>
    grid: ["min(TILES, SM_COUNT * BLOCKS_PER_SM)"]
    block: ["4 * ROWS"]
    args: [q, k, v, out, ticket, S, ROW_TILES, TILES, scale]
*/
#include <cuda_fp16.h>

constexpr int kThreads = 4 * ROWS, kGroup = 4;     // kGroup: keys whose reductions overlap
constexpr unsigned kWarp = 0xffffffffu;

template <int D> struct alignas(16) Stage { __half key[KEYS * D], value[KEYS * D]; };

// Eight halves and their products in single precision.
struct Eight {
    uint4 bits;
    __device__ float2 Pair(int i) const {
        const unsigned word = i == 0 ? bits.x : i == 1 ? bits.y : i == 2 ? bits.z : bits.w;
        return __half22float2(*reinterpret_cast<const __half2*>(&word));
    }
    __device__ float Dot(const float* with) const {
        float sum = 0.0f;
        for (int i = 0; i < 4; ++i) sum += Pair(i).x * with[2 * i] + Pair(i).y * with[2 * i + 1];
        return sum;
    }
    __device__ void AddTo(float* to, float weight) const {
        for (int i = 0; i < 4; ++i) to[2 * i] += weight * Pair(i).x, to[2 * i + 1] += weight * Pair(i).y;
    }
};

__device__ __forceinline__ unsigned PackHalves(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
}

// What a thread carries of the next stage while the present one is worked on.
template <int D> struct Prefetch {
    static constexpr int kPieces = KEYS * D / 8;                       // 16 bytes each
    static constexpr int kMine = (kPieces + kThreads - 1) / kThreads;
    uint4 key[kMine], value[kMine];

    __device__ void Fetch(const uint4* k, const uint4* v, int firstKey, int endKey) {
        for (int i = 0; i < kMine; ++i) {
            const int piece = i * kThreads + threadIdx.x;
            const bool inside = piece < kPieces && firstKey + piece / (D / 8) < endKey;
            const size_t at = size_t(firstKey) * (D / 8) + piece;
            key[i] = inside ? k[at] : make_uint4(0, 0, 0, 0);
            value[i] = inside ? v[at] : make_uint4(0, 0, 0, 0);
        }
    }
    __device__ void Put(Stage<D>& stage) const {
        for (int i = 0; i < kMine; ++i) {
            const int piece = i * kThreads + threadIdx.x;
            if (piece >= kPieces) break;
            reinterpret_cast<uint4*>(stage.key)[piece] = key[i];
            reinterpret_cast<uint4*>(stage.value)[piece] = value[i];
        }
    }
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(kThreads)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
          int* __restrict__ ticket, int S, int rowTiles, int tiles, float scale) {
    constexpr int kSlices = D / 32;                // pieces of eight columns of a lane: part, part + 4, ...
    __shared__ Stage<D> stages[2];
    __shared__ int drawn;
    const int part = threadIdx.x & 3, rowInTile = threadIdx.x >> 2;
    const float toLog2 = scale * 1.44269504f;

    while (true) {
        if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1);
        __syncthreads();
        const int tile = drawn;
        if (tile >= tiles) break;
        // The last rows see the most keys of a causal mask, so they are drawn first.
        const int head = tile / rowTiles, rowTile = rowTiles - 1 - tile % rowTiles;
        const int firstRow = rowTile * ROWS, row = firstRow + rowInTile;
        const size_t base = size_t(head) * S * D;
        const int endKey = CAUSAL ? min(S, firstRow + ROWS) : S;
        const int steps = (endKey + KEYS - 1) / KEYS;
        const uint4 *headK = reinterpret_cast<const uint4*>(k + base), *headV = reinterpret_cast<const uint4*>(v + base);

        float query[kSlices * 8], gathered[kSlices * 8] = {};
        for (int i = 0; i < kSlices; ++i) {
            Eight x = {make_uint4(0, 0, 0, 0)};
            if (row < S) x.bits = reinterpret_cast<const uint4*>(q + base + size_t(row) * D)[i * 4 + part];
            for (int e = 0; e < 4; ++e) query[i * 8 + 2 * e] = x.Pair(e).x * toLog2, query[i * 8 + 2 * e + 1] = x.Pair(e).y * toLog2;
        }
        float highest = -INFINITY, denominator = 0.0f;

        Prefetch<D> next;
        next.Fetch(headK, headV, 0, endKey);
        next.Put(stages[0]);
        __syncthreads();
        for (int step = 0; step < steps; ++step) {
            const Stage<D>& stage = stages[step & 1];
            const bool more = step + 1 < steps;
            if (more) next.Fetch(headK, headV, (step + 1) * KEYS, endKey);
            for (int g = 0; g < KEYS; g += kGroup) {
                float score[kGroup], groupMax = highest;
                for (int j = 0; j < kGroup; ++j) {
                    const uint4* keyRow = reinterpret_cast<const uint4*>(stage.key + (g + j) * D);
                    float dot = 0.0f;
                    for (int i = 0; i < kSlices; ++i) dot += Eight{keyRow[i * 4 + part]}.Dot(query + i * 8);
                    dot += __shfl_xor_sync(kWarp, dot, 1);
                    dot += __shfl_xor_sync(kWarp, dot, 2);
                    const int key = step * KEYS + g + j;
                    score[j] = key < endKey && (!CAUSAL || key <= row) ? dot : -INFINITY;
                    groupMax = fmaxf(groupMax, score[j]);
                }
                if (groupMax > highest) {          // most groups raise no maximum
                    const float shrink = exp2f(highest - groupMax);
                    denominator *= shrink;
                    for (int c = 0; c < kSlices * 8; ++c) gathered[c] *= shrink;
                    highest = groupMax;
                }
                for (int j = 0; j < kGroup; ++j) {
                    const float weight = exp2f(score[j] - highest);
                    const uint4* valueRow = reinterpret_cast<const uint4*>(stage.value + (g + j) * D);
                    denominator += weight;
                    for (int i = 0; i < kSlices; ++i) Eight{valueRow[i * 4 + part]}.AddTo(gathered + i * 8, weight);
                }
            }
            if (more) next.Put(stages[(step + 1) & 1]);
            __syncthreads();                       // the stage of the next step is complete, this one has been read
        }
        if (row >= S) continue;
        const float inverse = 1.0f / denominator;
        uint4* to = reinterpret_cast<uint4*>(out + base + size_t(row) * D);
        for (int i = 0; i < kSlices; ++i) {
            const float* c = gathered + i * 8;
            to[i * 4 + part] = make_uint4(PackHalves(c[0] * inverse, c[1] * inverse), PackHalves(c[2] * inverse, c[3] * inverse),
                                          PackHalves(c[4] * inverse, c[5] * inverse), PackHalves(c[6] * inverse, c[7] * inverse));
        }
    }
}
