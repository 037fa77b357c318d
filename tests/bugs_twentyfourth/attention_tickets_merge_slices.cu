/* evoengine
name: attention_tickets_merge_slices
precision: fp16
summary: attention in single precision with register tiles; the keys are sliced over blocks, and the last block of a query tile merges
tunables:
  SLICES: [4, 2, 8]      # blocks that share out the keys of a query tile
  KEY_TILE: [32]         # keys in shared memory at a time
let:
  TILES: ceil_div(S, 32)
  SHARED: 4*D*36 + 4*D*(KEY_TILE + 4) + 2*KEY_TILE*D + 4*32*(KEY_TILE + 4)
require: [SHARED <= MAX_SHARED_BYTES]
scratch:
  part_out: {dtype: float32, shape: [SLICES, "B*H*S", D]}
  part_stat: {dtype: float32, shape: [SLICES, "B*H*S", 2]}
  tickets: {dtype: int32, shape: ["B*H*TILES"], init: 0}
launches:
  - kernel: slice_attention<D>
    grid: [TILES, SLICES, "B*H"]
    block: [128]
    shared: SHARED
    args: [q, k, v, out, part_out, part_stat, tickets, S, causal, scale]
*/
// Tensor cores are left alone: a thread holds a tile of 2 queries by 4 keys of the scores, and
// later 2 queries by D/8 channels of the output. Eight neighbouring lanes share a pair of queries.
#include <cuda_fp16.h>

#define FULL_WARP 0xffffffffu
constexpr int QUERY_TILE = 32, LANES_A_ROW = 8, THREADS = 128;
constexpr int Q_PITCH = QUERY_TILE + 4, K_PITCH = KEY_TILE + 4;
constexpr int KEYS_A_LANE = KEY_TILE / LANES_A_ROW;

// Eight halves of a row, or zeros where the row does not exist.
__device__ __forceinline__ uint4 row_piece(const __half* base, int row, int rows, int pitch, int column) {
    if (row >= rows) return make_uint4(0u, 0u, 0u, 0u);
    return __ldg(reinterpret_cast<const uint4*>(base + size_t(row) * pitch + column));
}

// Rows first.. of a head as floats, channel by channel: what a thread multiplies at once lies side by side.
template <int D, int ROWS, int PITCH>
__device__ void stage_transposed(float* to, const __half* head, int first, int S, float factor) {
    for (int i = threadIdx.x; i < ROWS * (D / 8); i += THREADS) {
        const int row = i % ROWS, channel = i / ROWS * 8;
        const uint4 raw = row_piece(head, first + row, S, D, channel);
        const __half* h = reinterpret_cast<const __half*>(&raw);
#pragma unroll
        for (int j = 0; j < 8; ++j) to[(channel + j) * PITCH + row] = __half2float(h[j]) * factor;
    }
}

template <int D>
__global__ void __launch_bounds__(THREADS)
slice_attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                __half* __restrict__ out, float* part_out, float* part_stat, int* tickets,
                int S, bool causal, float scale) {
    extern __shared__ __align__(16) float pool[];
    float* q_t = pool;                                            // [D][Q_PITCH]
    float* k_t = q_t + D * Q_PITCH;                               // [D][K_PITCH]
    float* weights = k_t + D * K_PITCH;                           // [QUERY_TILE][K_PITCH]
    __half* v_rows = reinterpret_cast<__half*>(weights + QUERY_TILE * K_PITCH);  // [KEY_TILE][D]
    __shared__ bool is_last;

    const int group = threadIdx.x / LANES_A_ROW, part = threadIdx.x % LANES_A_ROW;
    const int first_query = blockIdx.x * QUERY_TILE, slice = blockIdx.y;
    const size_t head_rows = size_t(blockIdx.z) * S, head = head_rows * D;
    const size_t slice_rows = size_t(gridDim.z) * S;              // rows of one slice of the partial results
    const float minus_inf = __int_as_float(0xff800000);

    // This slice's share of the key tiles that the query tile sees at all; it may be empty.
    const int seen_keys = causal ? min(S, first_query + QUERY_TILE) : S;
    const int key_tiles = (seen_keys + KEY_TILE - 1) / KEY_TILE;
    const int share = (key_tiles + SLICES - 1) / SLICES;
    const int tile_begin = slice * share, tile_end = min(key_tiles, tile_begin + share);

    stage_transposed<D, QUERY_TILE, Q_PITCH>(q_t, q + head, first_query, S, scale * 1.44269504f);
    float acc[2][D / 8] = {};
    float top[2] = {minus_inf, minus_inf}, total[2] = {0.0f, 0.0f};

    for (int tile = tile_begin; tile < tile_end; ++tile) {
        const int first_key = tile * KEY_TILE;
        __syncthreads();     // nobody still reads the tile before this one
        stage_transposed<D, KEY_TILE, K_PITCH>(k_t, k + head, first_key, S, 1.0f);
        for (int i = threadIdx.x; i < KEY_TILE * D / 8; i += THREADS) {
            const int row = i / (D / 8), channel = i % (D / 8) * 8;
            *reinterpret_cast<uint4*>(v_rows + row * D + channel) = row_piece(v + head, first_key + row, S, D, channel);
        }
        __syncthreads();

        float score[2][KEYS_A_LANE] = {};
#pragma unroll 8
        for (int c = 0; c < D; ++c) {
            const float2 a = *reinterpret_cast<const float2*>(q_t + c * Q_PITCH + group * 2);
            const float4 b = *reinterpret_cast<const float4*>(k_t + c * K_PITCH + part * KEYS_A_LANE);
            score[0][0] += a.x * b.x, score[0][1] += a.x * b.y, score[0][2] += a.x * b.z, score[0][3] += a.x * b.w;
            score[1][0] += a.y * b.x, score[1][1] += a.y * b.y, score[1][2] += a.y * b.z, score[1][3] += a.y * b.w;
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int visible = causal ? min(S, first_query + group * 2 + r + 1) : S;
            float best = top[r];
#pragma unroll
            for (int j = 0; j < KEYS_A_LANE; ++j) {
                if (first_key + part * KEYS_A_LANE + j >= visible) score[r][j] = minus_inf;
                best = fmaxf(best, score[r][j]);
            }
#pragma unroll
            for (int step = LANES_A_ROW / 2; step > 0; step >>= 1) best = fmaxf(best, __shfl_xor_sync(FULL_WARP, best, step));
            const float shrink = exp2f(top[r] - best);   // finite: a query sees a key of every tile up to its own
            top[r] = best;
            total[r] *= shrink;
#pragma unroll
            for (int j = 0; j < KEYS_A_LANE; ++j) {
                const float p = exp2f(score[r][j] - best);
                total[r] += p;
                weights[(group * 2 + r) * K_PITCH + part * KEYS_A_LANE + j] = p;
            }
#pragma unroll
            for (int j = 0; j < D / 8; ++j) acc[r][j] *= shrink;
        }
        __syncwarp();        // the eight lanes of a pair of queries exchange their weights
#pragma unroll 4
        for (int n = 0; n < KEY_TILE; ++n) {
            const float p0 = weights[group * 2 * K_PITCH + n], p1 = weights[(group * 2 + 1) * K_PITCH + n];
#pragma unroll
            for (int j = 0; j < D / 16; ++j) {
                const float2 x = __half22float2(*reinterpret_cast<const __half2*>(v_rows + n * D + j * 16 + part * 2));
                acc[0][2 * j] += p0 * x.x, acc[0][2 * j + 1] += p0 * x.y;
                acc[1][2 * j] += p1 * x.x, acc[1][2 * j + 1] += p1 * x.y;
            }
        }
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
        for (int step = 1; step < LANES_A_ROW; step *= 2) total[r] += __shfl_xor_sync(FULL_WARP, total[r], step);
        const int query = first_query + group * 2 + r;
        if (query >= S) continue;
        const size_t at = slice * slice_rows + head_rows + query;
        if (part == 0) *reinterpret_cast<float2*>(part_stat + at * 2) = make_float2(top[r], total[r]);
#pragma unroll
        for (int j = 0; j < D / 16; ++j)
            *reinterpret_cast<float2*>(part_out + at * D + j * 16 + part * 2) = make_float2(acc[r][2 * j], acc[r][2 * j + 1]);
    }
    __threadfence();         // the partial results are out before the ticket is drawn
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&tickets[blockIdx.z * gridDim.x + blockIdx.x], 1) == SLICES - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();

    for (int i = threadIdx.x; i < QUERY_TILE * D / 2; i += THREADS) {
        const int query = first_query + i / (D / 2), channel = i % (D / 2) * 2;
        if (query >= S) break;
        float peak = minus_inf, sum = 0.0f;
        float2 mixed = make_float2(0.0f, 0.0f);
        for (int s = 0; s < SLICES; ++s) peak = fmaxf(peak, __ldcg(part_stat + (s * slice_rows + head_rows + query) * 2));
        for (int s = 0; s < SLICES; ++s) {
            const size_t at = s * slice_rows + head_rows + query;
            const float2 stat = __ldcg(reinterpret_cast<const float2*>(part_stat + at * 2));
            const float2 piece = __ldcg(reinterpret_cast<const float2*>(part_out + at * D + channel));
            const float share_of_slice = exp2f(stat.x - peak);
            sum += share_of_slice * stat.y;
            mixed.x += share_of_slice * piece.x, mixed.y += share_of_slice * piece.y;
        }
        *reinterpret_cast<__half2*>(out + head + size_t(query) * D + channel) = __floats2half2_rn(mixed.x / sum, mixed.y / sum);
    }
}
