/* evoengine
name: lantern_warp_pairs_mma
precision: fp16
summary: two warps share 16 queries, each sees one half of every key tile; mma.sync, keys and values copied ahead
tunables:
  GROUPS: [2, 4, 1]          # sixteens of queries in a block, two warps for each
let:
  ROWS: 16 * GROUPS
  TILE_BYTES: 64 * (D + 8) * 2
require:
  - 4 * TILE_BYTES <= MAX_SHARED_BYTES
  - GROUPS * 16 * (D + 2) * 4 <= 4 * TILE_BYTES
launches:
  - kernel: "lantern<D, causal>"
    grid: ["ceil_div(S, ROWS)", "B * H"]
    block: [64 * GROUPS]
    shared: 4 * TILE_BYTES
    args: [q, k, v, out, S, scale]
*/
// Warp pair `group` owns queries [16 * group, 16 * group + 16) of the block. Of each tile of 64 keys
// its even warp takes the first 32, its odd warp the last 32, each with its own running statistics.
// In the end the odd warp leaves its state in shared memory and the even one merges and writes.
#include <cuda_fp16.h>

namespace tile {
constexpr int keys = 64;          // of both warps together
constexpr int half_keys = keys / 2;
constexpr int threads = 64 * GROUPS;
constexpr int pad = 8;            // halves: moves successive rows by four banks
}  // namespace tile

__device__ __forceinline__ unsigned smem_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
__device__ __forceinline__ void wait_until_pending() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void mma16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned two_halves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

// One tile of 64 rows from global to shared memory; rows from `count` on become zeros.
template <int D>
__device__ __forceinline__ void copy_tile(__half* to, const __half* from, int first, int count) {
    constexpr int chunks = D / 8;
    for (int i = threadIdx.x; i < tile::keys * chunks; i += tile::threads) {
        const int r = i / chunks, c = i % chunks * 8;
        const bool inside = first + r < count;
        const __half* source = from + (inside ? size_t(first + r) * D + c : 0);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_address(to + r * (D + tile::pad) + c)),
                     "l"(source), "r"(inside ? 16 : 0)
                     : "memory");
    }
}

template <int D>
struct State {          // of a warp: 16 queries, of which a lane has rows lane / 4 and lane / 4 + 8
    float acc[D / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY};
    float sum[2] = {0.0f, 0.0f};
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(64 * GROUPS)
lantern(const __half* q, const __half* k, const __half* v, __half* out, int S, float scale) {
    constexpr int ld = D + tile::pad;
    extern __shared__ __align__(16) unsigned char smem[];
    __half* key_tiles = reinterpret_cast<__half*>(smem);             // two stages
    __half* value_tiles = key_tiles + 2 * tile::keys * ld;           // two stages

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = warp / 2, side = warp % 2;
    const int quad = lane / 4, pair = lane % 4 * 2;
    const int block_row = blockIdx.x * 16 * GROUPS;
    const int row[2] = {block_row + group * 16 + quad, block_row + group * 16 + quad + 8};
    const size_t slice = size_t(blockIdx.y) * S * D;
    q += slice, k += slice, v += slice, out += slice;

    unsigned query[D / 16][4];
    for (int d = 0; d < D / 16; ++d)
        for (int i = 0; i < 4; ++i) {
            const int r = row[i % 2], c = d * 16 + i / 2 * 8 + pair;
            query[d][i] = r < S ? *reinterpret_cast<const unsigned*>(q + size_t(r) * D + c) : 0u;
        }

    State<D> state;
    const float to_log2 = scale * 1.44269504f;
    const int limit = CAUSAL ? min(S, block_row + 16 * GROUPS) : S;
    const int tiles = (limit + tile::keys - 1) / tile::keys;

    copy_tile<D>(key_tiles, k, 0, S);
    commit();
    copy_tile<D>(value_tiles, v, 0, S);
    commit();
    for (int t = 0; t < tiles; ++t) {
        const int stage = t % 2, ahead = (t + 1) % 2;
        if (t + 1 < tiles) copy_tile<D>(key_tiles + ahead * tile::keys * ld, k, (t + 1) * tile::keys, S);
        commit();
        if (t + 1 < tiles) copy_tile<D>(value_tiles + ahead * tile::keys * ld, v, (t + 1) * tile::keys, S);
        commit();

        wait_until_pending<3>();        // the keys of this tile
        __syncthreads();
        const __half* keys = key_tiles + stage * tile::keys * ld + side * tile::half_keys * ld;
        float score[4][4] = {};
        for (int n = 0; n < 4; ++n)
            for (int d = 0; d < D / 16; ++d) {
                const __half* at = keys + (n * 8 + quad) * ld + d * 16 + pair;
                const unsigned low = *reinterpret_cast<const unsigned*>(at);
                const unsigned high = *reinterpret_cast<const unsigned*>(at + 8);
                mma16816(score[n], query[d], low, high);
            }

        const int start = t * tile::keys + side * tile::half_keys;
        float high[2] = {state.top[0], state.top[1]};
        for (int n = 0; n < 4; ++n)
            for (int i = 0; i < 4; ++i) {
                const int key = start + n * 8 + pair + i % 2;
                const bool seen = key < S && (!CAUSAL || key <= row[i / 2]);
                score[n][i] = seen ? score[n][i] * to_log2 : -INFINITY;
                high[i / 2] = fmaxf(high[i / 2], score[n][i]);
            }
        for (int r = 0; r < 2; ++r) {
            high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 1));
            high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 2));
            // a warp may have seen nothing but masked keys so far
            const float base = high[r] == -INFINITY ? 0.0f : high[r];
            const float fade = exp2f(state.top[r] - base);
            state.top[r] = high[r];
            state.sum[r] *= fade;
            for (int n = 0; n < 4; ++n)
                for (int i = 0; i < 2; ++i) {
                    const float weight = exp2f(score[n][2 * r + i] - base);
                    score[n][2 * r + i] = weight;
                    state.sum[r] += weight;
                }
            for (int d = 0; d < D / 8; ++d) {
                state.acc[d][2 * r] *= fade;
                state.acc[d][2 * r + 1] *= fade;
            }
        }

        wait_until_pending<2>();        // the values of this tile
        __syncthreads();
        const __half* values = value_tiles + stage * tile::keys * ld + side * tile::half_keys * ld;
        for (int j = 0; j < 2; ++j) {
            const unsigned weights[4] = {two_halves(score[2 * j][0], score[2 * j][1]),
                                         two_halves(score[2 * j][2], score[2 * j][3]),
                                         two_halves(score[2 * j + 1][0], score[2 * j + 1][1]),
                                         two_halves(score[2 * j + 1][2], score[2 * j + 1][3])};
            for (int d = 0; d < D / 16; ++d) {
                unsigned b[4];
                const __half* at = values + (j * 16 + lane % 16) * ld + d * 16 + lane / 16 * 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                             : "r"(smem_address(at)) : "memory");
                mma16816(state.acc[2 * d], weights, b[0], b[1]);
                mma16816(state.acc[2 * d + 1], weights, b[2], b[3]);
            }
        }
        __syncthreads();                // nobody reads this stage any more
    }

    for (int r = 0; r < 2; ++r) {
        state.sum[r] += __shfl_xor_sync(~0u, state.sum[r], 1);
        state.sum[r] += __shfl_xor_sync(~0u, state.sum[r], 2);
    }

    // The tiles are done with; their memory now carries the states of the odd warps.
    wait_until_pending<0>();
    float* sums = reinterpret_cast<float*>(smem) + group * 16 * D;
    float* stats = reinterpret_cast<float*>(smem) + GROUPS * 16 * D + group * 32;
    if (side == 1) {
        for (int r = 0; r < 2; ++r) {
            for (int d = 0; d < D / 8; ++d)
                for (int i = 0; i < 2; ++i) sums[(quad + 8 * r) * D + d * 8 + pair + i] = state.acc[d][2 * r + i];
            if (pair == 0) {
                stats[quad + 8 * r] = state.top[r];
                stats[16 + quad + 8 * r] = state.sum[r];
            }
        }
    }
    __syncthreads();
    if (side == 1) return;
    for (int r = 0; r < 2; ++r) {
        if (row[r] >= S) continue;
        const float their_top = stats[quad + 8 * r], their_sum = stats[16 + quad + 8 * r];
        const float top = fmaxf(state.top[r], their_top);       // finite: the even warp has key 0
        const float mine = exp2f(state.top[r] - top), theirs = exp2f(their_top - top);
        const float inverse = 1.0f / (state.sum[r] * mine + their_sum * theirs);
        for (int d = 0; d < D / 8; ++d) {
            const float2 other = *reinterpret_cast<const float2*>(sums + (quad + 8 * r) * D + d * 8 + pair);
            const float x = state.acc[d][2 * r] * mine + other.x * theirs;
            const float y = state.acc[d][2 * r + 1] * mine + other.y * theirs;
            *reinterpret_cast<unsigned*>(out + size_t(row[r]) * D + d * 8 + pair) = two_halves(x * inverse, y * inverse);
        }
    }
}
