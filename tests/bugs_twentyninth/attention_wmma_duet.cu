/* evoengine
name: attention_wmma_duet
precision: fp16
summary: two teams of four warps take alternate tiles of keys with WMMA, each behind its own named barrier, and merge in shared memory
tunables:
  kTileKeys: [32, 64]
let:
  kRows: 32
  BYTES_Q: 2 * kRows * (D + 8)
  BYTES_KV: 2 * kTileKeys * (D + 8)
  BYTES_SCORES: 4 * kRows * (kTileKeys + 4)
  BYTES_WEIGHTS: 2 * kRows * (kTileKeys + 8)
  BYTES_SUMS: 4 * kRows * (D + 4)
  BYTES_TEAM: BYTES_KV + BYTES_SCORES + BYTES_WEIGHTS + BYTES_SUMS + 8 * kRows
  BYTES_ALL: BYTES_Q + 2 * BYTES_TEAM
require: [BYTES_ALL <= MAX_SHARED_BYTES]
launches:
  - kernel: duetAttention<D, causal>
    grid: ["ceil_div(S, kRows)", "B*H"]
    block: [256]
    shared: BYTES_ALL
    args: [q, k, v, out, S, scale]
*/
// Work of a block: 32 queries of one head, for two teams of 128 threads. Team 0 walks over the tiles of
// keys 0, 2, 4, ..., team 1 over 1, 3, 5, ..., neither waiting for the other. Each keeps maximum, sum and
// unnormalised output of its share in shared memory; at the end each writes half of the 32 rows.
#include <cuda_fp16.h>
#include <mma.h>

namespace wm = nvcuda::wmma;

constexpr int kQueries = 32;
constexpr int kThreads = 128;      // of a team
constexpr int kLanesPerRow = kThreads / kQueries;
constexpr float kLog2e = 1.4426950408889634f;

// Waits for the 128 threads of one team; barrier 0 is that of the whole block.
__device__ __forceinline__ void teamSync(int team) {
    asm volatile("bar.sync %0, %1;" :: "r"(team + 1), "n"(kThreads) : "memory");
}

struct RowState {          // of one query, over the keys that this block has seen
    float maximum;
    float sum;
};

template <int D>
struct Layout {
    static constexpr int kPitchHalf = D + 8;
    static constexpr int kPitchScores = kTileKeys + 4;
    static constexpr int kPitchWeights = kTileKeys + 8;
    static constexpr int kPitchSums = D + 4;

    __half* queries;       // one copy for both teams; the rest is a team's own
    __half* tile;          // keys first, then the values of the same keys
    float* scores;
    __half* weights;
    float* sums;
    RowState* state;

    static constexpr int kTeamBytes = 2 * kTileKeys * kPitchHalf + 4 * kQueries * kPitchScores +
                                      2 * kQueries * kPitchWeights + 4 * kQueries * kPitchSums + 8 * kQueries;

    __device__ Layout(unsigned char* memory, int team) {
        queries = reinterpret_cast<__half*>(memory);
        tile = reinterpret_cast<__half*>(memory + 2 * kQueries * kPitchHalf + team * kTeamBytes);
        scores = reinterpret_cast<float*>(tile + kTileKeys * kPitchHalf);
        weights = reinterpret_cast<__half*>(scores + kQueries * kPitchScores);
        sums = reinterpret_cast<float*>(weights + kQueries * kPitchWeights);
        state = reinterpret_cast<RowState*>(sums + kQueries * kPitchSums);
    }
};

// Copies `rows` rows of a head, from row `first` on, with `threads` threads; rows from S on become zeros.
template <int D>
__device__ void stageRows(__half* to, const __half* head, int first, int rows, int S, int thread, int threads) {
    constexpr int kVectors = D / 8;
    for (int i = thread; i < rows * kVectors; i += threads) {
        const int row = i / kVectors, column = i % kVectors * 8;
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (first + row < S) eight = *reinterpret_cast<const uint4*>(head + size_t(first + row) * D + column);
        *reinterpret_cast<uint4*>(to + row * Layout<D>::kPitchHalf + column) = eight;
    }
}

// scores = queries * keys^T; the four warps of a team share out the 16 x 16 tiles of the result.
template <int D>
__device__ void multiplyKeys(const Layout<D>& l, int warp) {
    constexpr int kAcross = kTileKeys / 16;
    for (int t = warp; t < 2 * kAcross; t += kThreads / 32) {
        const int m = t / kAcross * 16, n = t % kAcross * 16;
        wm::fragment<wm::accumulator, 16, 16, 16, float> acc;
        wm::fill_fragment(acc, 0.0f);
        for (int d = 0; d < D; d += 16) {
            wm::fragment<wm::matrix_a, 16, 16, 16, __half, wm::row_major> a;
            wm::fragment<wm::matrix_b, 16, 16, 16, __half, wm::col_major> b;
            wm::load_matrix_sync(a, l.queries + m * l.kPitchHalf + d, l.kPitchHalf);
            wm::load_matrix_sync(b, l.tile + n * l.kPitchHalf + d, l.kPitchHalf);
            wm::mma_sync(acc, a, b, acc);
        }
        wm::store_matrix_sync(l.scores + m * l.kPitchScores + n, acc, l.kPitchScores, wm::mem_row_major);
    }
}

// sums += weights * values, in the same manner; the sums live in shared memory between tiles.
template <int D>
__device__ void multiplyValues(const Layout<D>& l, int warp) {
    constexpr int kAcross = D / 16;
    for (int t = warp; t < 2 * kAcross; t += kThreads / 32) {
        const int m = t / kAcross * 16, n = t % kAcross * 16;
        wm::fragment<wm::accumulator, 16, 16, 16, float> acc;
        wm::load_matrix_sync(acc, l.sums + m * l.kPitchSums + n, l.kPitchSums, wm::mem_row_major);
        for (int j = 0; j < kTileKeys; j += 16) {
            wm::fragment<wm::matrix_a, 16, 16, 16, __half, wm::row_major> a;
            wm::fragment<wm::matrix_b, 16, 16, 16, __half, wm::row_major> b;
            wm::load_matrix_sync(a, l.weights + m * l.kPitchWeights + j, l.kPitchWeights);
            wm::load_matrix_sync(b, l.tile + j * l.kPitchHalf + n, l.kPitchHalf);
            wm::mma_sync(acc, a, b, acc);
        }
        wm::store_matrix_sync(l.sums + m * l.kPitchSums + n, acc, l.kPitchSums, wm::mem_row_major);
    }
}

template <int D, bool kCausal>
__global__ void __launch_bounds__(2 * kThreads)
duetAttention(const __half* q, const __half* k, const __half* v, __half* out, int S, float scale) {
    extern __shared__ __align__(128) unsigned char memory[];
    const int team = threadIdx.x / kThreads, thread = threadIdx.x % kThreads, warp = thread / 32;
    const Layout<D> mine(memory, team), theirs(memory, team ^ 1);

    const int firstQuery = blockIdx.x * kQueries;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int visible = kCausal ? min(S, firstQuery + kQueries) : S;

    // The four threads of a row are neighbours in one warp.
    const int row = thread / kLanesPerRow, part = thread % kLanesPerRow;
    const int query = firstQuery + row;
    float maximum = -INFINITY, sum = 0.0f;

    stageRows<D>(mine.queries, q + head, firstQuery, kQueries, S, threadIdx.x, 2 * kThreads);
    for (int c = part; c < D; c += kLanesPerRow) mine.sums[row * mine.kPitchSums + c] = 0.0f;
    __syncthreads();

    for (int first = team * kTileKeys; first < visible; first += 2 * kTileKeys) {
        stageRows<D>(mine.tile, k + head, first, kTileKeys, S, thread, kThreads);
        teamSync(team);
        multiplyKeys<D>(mine, warp);
        teamSync(team);
        stageRows<D>(mine.tile, v + head, first, kTileKeys, S, thread, kThreads);     // the keys are no longer needed

        float* scores = mine.scores + row * mine.kPitchScores;
        float top = maximum;
        for (int j = part; j < kTileKeys; j += kLanesPerRow) {
            const int key = first + j;
            const bool hidden = key >= S || (kCausal && key > query);
            scores[j] = hidden ? -INFINITY : scores[j] * (scale * kLog2e);
            top = fmaxf(top, scores[j]);
        }
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        const float base = top == -INFINITY ? 0.0f : top;           // all keys of the share so far are hidden
        const float correction = exp2f(maximum - base);
        maximum = top;
        sum *= correction;
        for (int j = part; j < kTileKeys; j += kLanesPerRow) {
            const float weight = exp2f(scores[j] - base);
            sum += weight;
            mine.weights[row * mine.kPitchWeights + j] = __float2half(weight);
        }
        for (int c = part; c < D; c += kLanesPerRow) mine.sums[row * mine.kPitchSums + c] *= correction;
        teamSync(team);
        multiplyValues<D>(mine, warp);
        teamSync(team);
    }

    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (part == 0) mine.state[row] = RowState{maximum, sum};
    __syncthreads();                                                 // both shares are complete

    for (int i = thread; i < kQueries / 2 * (D / 2); i += kThreads) {
        const int r = team * (kQueries / 2) + i / (D / 2), c = i % (D / 2) * 2;
        if (firstQuery + r >= S) continue;
        const RowState a = mine.state[r], b = theirs.state[r];
        const float top = fmaxf(a.maximum, b.maximum);               // finite: one of the shares has key 0
        const float wa = exp2f(a.maximum - top), wb = exp2f(b.maximum - top);
        const float inverse = 1.0f / (wa * a.sum + wb * b.sum);
        const float2 x = *reinterpret_cast<const float2*>(mine.sums + r * mine.kPitchSums + c);
        const float2 y = *reinterpret_cast<const float2*>(theirs.sums + r * theirs.kPitchSums + c);
        *reinterpret_cast<__half2*>(out + head + size_t(firstQuery + r) * D + c) =
            __floats2half2_rn((wa * x.x + wb * y.x) * inverse, (wa * x.y + wb * y.y) * inverse);
    }
}
