/* evoengine
name: last_arrival_merges_splits
precision: fp16
summary: keys split over blocks, WMMA with the output in shared memory, and a ticket by which the last block of a row tile merges the splits
tunables:
  SPLITS: [3, 2, 4, 1]       # blocks that share the keys of a row tile
let:
  SPAN: round_up(ceil_div(S, SPLITS), 32)     # keys of a split
  ROW_TILES: ceil_div(S, 32)
  HALVES: (D + 8) * 3 * 32 + 40 * 32
  FLOATS: 36 * 32 + (D + 4) * 32
launches:
  - kernel: attendSplit<D, causal>
    grid: [ROW_TILES, "B*H", SPLITS]
    block: [128]
    shared: 2*HALVES + 4*FLOATS
    args: [q, k, v, partialOut, partialStats, tickets, out, S, SPAN, scale]
scratch:
  partialOut: {dtype: float32, shape: [B*H, SPLITS, S, D]}
  partialStats: {dtype: float32, shape: [B*H, SPLITS, S, 2]}    # maximum, sum
  tickets: {dtype: int32, shape: [B*H, ROW_TILES], init: 0}
*/
// A block works on 32 queries and its share of the keys, 32 at a time. While the tensor cores multiply, the next
// keys are already on their way into registers. Fragments hide which lane has which element, so the running output
// stays in shared memory, where the four threads of a row can rescale it.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int kRows = 32, kKeys = 32, kThreads = 128, kLdScore = kKeys + 4, kLdWeight = kKeys + 8;
using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
template <class Layout> using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, Layout>;
using FragmentSum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// A tile of rows in registers on its way from global to shared memory.
template <int D, int ROWS> struct TileInFlight {
    static constexpr int kPieces = ROWS * D / 8 / kThreads;
    uint4 piece[kPieces];
    __device__ void fetch(const __half* head, int firstRow, int endRow) {
        for (int i = 0; i < kPieces; ++i) {
            const int index = i * kThreads + threadIdx.x, row = firstRow + index / (D / 8), column = index % (D / 8) * 8;
            piece[i] = make_uint4(0, 0, 0, 0);
            if (row < endRow) piece[i] = *reinterpret_cast<const uint4*>(head + size_t(row) * D + column);
        }
    }
    __device__ void store(__half* tile) const {
        for (int i = 0, index = threadIdx.x; i < kPieces; ++i, index += kThreads)
            *reinterpret_cast<uint4*>(tile + index / (D / 8) * (D + 8) + index % (D / 8) * 8) = piece[i];
    }
};

// The four threads of a row are neighbours.
__device__ __forceinline__ float quadMax(float x) {
    for (int step = 1; step < 4; step *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(kThreads)
attendSplit(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* partialOut,
            float2* partialStats, int* tickets, __half* __restrict__ out, int S, int span, float scale) {
    constexpr int kLdHalf = D + 8, kLdOut = D + 4;
    extern __shared__ __align__(128) unsigned char memory[];
    __half *queryTile = reinterpret_cast<__half*>(memory), *keyTile = queryTile + kRows * kLdHalf;
    __half *valueTile = keyTile + kKeys * kLdHalf, *weightTile = valueTile + kKeys * kLdHalf;
    float *scoreTile = reinterpret_cast<float*>(weightTile + kRows * kLdWeight), *outTile = scoreTile + kRows * kLdScore;
    const int warp = threadIdx.x / 32, bandRow = warp % 2 * 16, myRow = threadIdx.x / 4, quarter = threadIdx.x % 4;
    const int firstRow = blockIdx.x * kRows, query = firstRow + myRow, firstKey = blockIdx.z * span;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int endKey = min(CAUSAL ? min(S, firstRow + kRows) : S, firstKey + span);
    TileInFlight<D, kRows> queries;
    queries.fetch(q + head, firstRow, S);
    queries.store(queryTile);
    for (int i = threadIdx.x; i < kRows * kLdOut; i += kThreads) outTile[i] = 0.0f;
    float runningMax = -INFINITY, runningSum = 0.0f;

    TileInFlight<D, kKeys> nextKeys, nextValues;
    nextKeys.fetch(k + head, firstKey, endKey);
    nextValues.fetch(v + head, firstKey, endKey);
    for (int base = firstKey; base < endKey; base += kKeys) {
        nextKeys.store(keyTile);
        nextValues.store(valueTile);
        __syncthreads();
        nextKeys.fetch(k + head, base + kKeys, endKey);
        nextValues.fetch(v + head, base + kKeys, endKey);
        for (int column = warp / 2 * 16; column < kKeys; column += 32) {
            FragmentSum sum;
            wmma::fill_fragment(sum, 0.0f);
            for (int d = 0; d < D; d += 16) {
                FragmentA a;
                FragmentB<wmma::col_major> b;
                wmma::load_matrix_sync(a, queryTile + bandRow * kLdHalf + d, kLdHalf);
                wmma::load_matrix_sync(b, keyTile + column * kLdHalf + d, kLdHalf);
                wmma::mma_sync(sum, a, b, sum);
            }
            wmma::store_matrix_sync(scoreTile + bandRow * kLdScore + column, sum, kLdScore, wmma::mem_row_major);
        }
        __syncthreads();
        // The keys of a thread lie four apart, so that the threads of a row never meet in a bank.
        const int visible = min(endKey, CAUSAL ? query + 1 : S) - base;
        float score[kKeys / 4], top = runningMax;
        for (int j = 0; j < kKeys / 4; ++j) {
            const int key = j * 4 + quarter;
            score[j] = key < visible ? scoreTile[myRow * kLdScore + key] * scale : -INFINITY;
            top = fmaxf(top, score[j]);
        }
        top = quadMax(top);
        const float decay = __expf(runningMax - top);          // a tile begins where every row sees a key: top is finite
        float sum = 0.0f;
        for (int j = 0; j < kKeys / 4; ++j) {
            sum += score[j] = __expf(score[j] - top);
            weightTile[myRow * kLdWeight + j * 4 + quarter] = __float2half_rn(score[j]);
        }
        for (int step = 1; step < 4; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        runningSum = runningSum * decay + sum;
        runningMax = top;
        for (int c = quarter; c < D; c += 4) outTile[myRow * kLdOut + c] *= decay;
        __syncthreads();
        for (int column = warp / 2 * 16; column < D; column += 32) {
            FragmentSum sum;
            wmma::load_matrix_sync(sum, outTile + bandRow * kLdOut + column, kLdOut, wmma::mem_row_major);
            for (int key = 0; key < kKeys; key += 16) {
                FragmentA a;
                FragmentB<wmma::row_major> b;
                wmma::load_matrix_sync(a, weightTile + bandRow * kLdWeight + key, kLdWeight);
                wmma::load_matrix_sync(b, valueTile + key * kLdHalf + column, kLdHalf);
                wmma::mma_sync(sum, a, b, sum);
            }
            wmma::store_matrix_sync(outTile + bandRow * kLdOut + column, sum, kLdOut, wmma::mem_row_major);
        }
        __syncthreads();      // the tiles are filled anew and the output is read by others
    }

    // A split without a visible key says so by a sum of zero and leaves its output unwritten.
    const size_t slice = size_t(blockIdx.y) * gridDim.z + blockIdx.z;
    if (query < S) {
        if (quarter == 0) partialStats[slice * S + query] = make_float2(runningMax, runningSum);
        if (runningSum > 0.0f)
            for (int c = quarter * 4; c < D; c += 16)
                *reinterpret_cast<float4*>(partialOut + (slice * S + query) * D + c) =
                    *reinterpret_cast<const float4*>(outTile + myRow * kLdOut + c);
    }
    __shared__ bool mergesHere;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        mergesHere = atomicAdd(&tickets[blockIdx.y * gridDim.x + blockIdx.x], 1) == int(gridDim.z) - 1;
    __syncthreads();
    if (!mergesHere || query >= S) return;
    __threadfence();
    const size_t firstSlice = size_t(blockIdx.y) * gridDim.z;
    float top = -INFINITY, total = 0.0f;
    for (int split = 0; split < gridDim.z; ++split) top = fmaxf(top, partialStats[(firstSlice + split) * S + query].x);
    float4 merged[D / 16] = {};
    for (int split = 0; split < gridDim.z; ++split) {
        const size_t row = (firstSlice + split) * S + query;
        const float2 stats = partialStats[row];
        if (stats.y == 0.0f) continue;
        const float share = __expf(stats.x - top);
        total += stats.y * share;
        for (int i = 0; i < D / 16; ++i) {
            const float4 part = *reinterpret_cast<const float4*>(partialOut + row * D + i * 16 + quarter * 4);
            merged[i].x += share * part.x, merged[i].y += share * part.y;
            merged[i].z += share * part.z, merged[i].w += share * part.w;
        }
    }
    const float inverse = 1.0f / total;
    for (int i = 0; i < D / 16; ++i) {
        __half2* to = reinterpret_cast<__half2*>(out + head + size_t(query) * D + i * 16 + quarter * 4);
        to[0] = __floats2half2_rn(merged[i].x * inverse, merged[i].y * inverse);
        to[1] = __floats2half2_rn(merged[i].z * inverse, merged[i].w * inverse);
    }
}
