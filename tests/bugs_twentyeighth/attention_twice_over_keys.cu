/* evoengine
name: attention_twice_over_keys
precision: fp16
summary: attention on WMMA that walks over the keys twice, first for the maximum and the sum of a row, then for its output, fed by copying warps through named barriers
tunables:
  MATH_WARPS: [4, 2]     # 16 query rows for each
  COPY_WARPS: [2, 1, 4]
  KEYS: [32, 16, 64]     # keys of a tile
let:
  Q_TILE: 32*MATH_WARPS*(D + 8)
  RING: 8*KEYS*(D + 8)
  PATCHES: 16*MATH_WARPS*(4*(KEYS + 4) + 2*(KEYS + 8))
launches:
  - kernel: attend_twice<D, causal>
    grid: ["ceil_div(S, 16*MATH_WARPS)", "B*H"]
    block: [32*(MATH_WARPS + COPY_WARPS)]
    shared: Q_TILE + RING + PATCHES
    args: [q, k, v, out, S, scale]
*/
// The second walk knows the maximum of every row, so that the accumulators are never rescaled and may stay in WMMA
// fragments, whose layout is not specified.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
constexpr int THREADS = 32 * (MATH_WARPS + COPY_WARPS), BM = 16 * MATH_WARPS, SLOTS = 2;
constexpr int LDS = KEYS + 4, LDW = KEYS + 8;    // pitches of scores and of weights
enum NamedBarrier { FULL = 1, FREE = FULL + SLOTS };      // one of each for every slot
__device__ __forceinline__ void bar_sync(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(THREADS) : "memory"); }
__device__ __forceinline__ void bar_arrive(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(THREADS) : "memory"); }

// Rows [row0, row0 + COUNT) of a head by NTHREADS threads; rows from `end` on become zeros.
template <int D, int COUNT, int NTHREADS>
__device__ __forceinline__ void copy_rows(__half* to, const __half* head, int row0, int end, int thread) {
    for (int i = thread; i < COUNT * (D / 8); i += NTHREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8, bytes = row0 + r < end ? 16 : 0;
        const __half* from = head + (bytes ? size_t(row0 + r) * D + c : 0);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(unsigned(__cvta_generic_to_shared(to + r * (D + 8) + c))), "l"(from), "r"(bytes) : "memory");
    }
}
__device__ __forceinline__ void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend_twice(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
             __half* __restrict__ out, int S, float scale) {
    constexpr int LD = D + 8, SLOT = 2 * KEYS * LD;       // a slot has keys, then values
    extern __shared__ __align__(128) __half smem[];
    __half* ring = smem + BM * LD;
    float* all_scores = reinterpret_cast<float*>(ring + SLOTS * SLOT);
    __half* all_weights = reinterpret_cast<__half*>(all_scores + BM * LDS);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, m0 = blockIdx.x * BM;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int end = CAUSAL ? min(S, m0 + BM) : S;
    const int tiles = (end + KEYS - 1) / KEYS, steps = 2 * tiles;

    if (warp >= MATH_WARPS) {
        const int thread = threadIdx.x - MATH_WARPS * 32;
        for (int step = 0; step < steps; ++step) {
            const int slot = step % SLOTS, n0 = step % tiles * KEYS;
            __half* to = ring + slot * SLOT;
            if (step >= SLOTS) bar_sync(FREE + slot);
            copy_rows<D, KEYS, COPY_WARPS * 32>(to, k + head, n0, end, thread);
            if (step >= tiles) copy_rows<D, KEYS, COPY_WARPS * 32>(to + KEYS * LD, v + head, n0, end, thread);
            copies_done();
            bar_arrive(FULL + slot);
        }
        return;
    }
    // Each of these warps brings its own queries, so that no other has to wait for them.
    __half* q_rows = smem + warp * 16 * LD;
    copy_rows<D, 16, 32>(q_rows, q + head, m0 + warp * 16, S, lane);
    copies_done();
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> qf[D / 16];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> of[D / 16];
    for (int d = 0; d < D / 16; ++d) {
        wmma::load_matrix_sync(qf[d], q_rows + d * 16, LD);
        wmma::fill_fragment(of[d], 0.0f);
    }
    float* scores = all_scores + warp * 16 * LDS;
    __half* weights = all_weights + warp * 16 * LDW;
    const float to_exp2 = scale * 1.44269504f;
    const int r = lane / 2, odd = lane % 2;               // two lanes share a row: even and odd columns
    const int row = m0 + warp * 16 + r;
    const int last_key = CAUSAL ? min(row, S - 1) : S - 1;
    float top = -INFINITY, sum = 0.0f;                    // of the lane's own columns until the first walk ends
    for (int step = 0; step < steps; ++step) {
        const int slot = step % SLOTS, n0 = step % tiles * KEYS;
        const __half* k_tile = ring + slot * SLOT;
        bar_sync(FULL + slot);
        for (int n = 0; n < KEYS / 16; ++n) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sf;
            wmma::fill_fragment(sf, 0.0f);
            for (int d = 0; d < D / 16; ++d) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> kf;
                wmma::load_matrix_sync(kf, k_tile + n * 16 * LD + d * 16, LD);
                wmma::mma_sync(sf, qf[d], kf, sf);
            }
            wmma::store_matrix_sync(scores + n * 16, sf, LDS, wmma::mem_row_major);
        }
        __syncwarp();
        const float* mine = scores + r * LDS + odd;
        if (step < tiles) {
            float tile_top = -INFINITY;
            for (int c = 0; c < KEYS; c += 2)
                if (n0 + c + odd <= last_key) tile_top = fmaxf(tile_top, mine[c] * to_exp2);
            if (tile_top > top) sum *= exp2f(top - tile_top), top = tile_top;
            for (int c = 0; c < KEYS; c += 2)
                if (n0 + c + odd <= last_key) sum += exp2f(mine[c] * to_exp2 - top);
            if (step == tiles - 1) {
                const float other_top = __shfl_xor_sync(0xffffffffu, top, 1), other_sum = __shfl_xor_sync(0xffffffffu, sum, 1);
                const float both = fmaxf(top, other_top);
                sum = sum * exp2f(top - both) + other_sum * exp2f(other_top - both);
                top = both;
            }
        } else {
            for (int c = 0; c < KEYS; c += 2) {
                const float weight = n0 + c + odd <= last_key ? exp2f(mine[c] * to_exp2 - top) : 0.0f;
                weights[r * LDW + c + odd] = __float2half_rn(weight);
            }
            __syncwarp();
            const __half* v_tile = k_tile + KEYS * LD;
            for (int n = 0; n < KEYS / 16; ++n) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> wf;
                wmma::load_matrix_sync(wf, weights + n * 16, LDW);
                for (int d = 0; d < D / 16; ++d) {
                    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> vf;
                    wmma::load_matrix_sync(vf, v_tile + n * 16 * LD + d * 16, LD);
                    wmma::mma_sync(of[d], wf, vf, of[d]);
                }
            }
        }
        __syncwarp();
        if (step + SLOTS < steps) bar_arrive(FREE + slot);
    }
    const float inverse = 1.0f / sum;
    for (int d = 0; d < D / 16; ++d) {                    // through the scores' patch, 16 columns at a time
        wmma::store_matrix_sync(scores, of[d], 16, wmma::mem_row_major);
        __syncwarp();
        alignas(16) __half2 eight[4];
        for (int i = 0; i < 4; ++i) {
            const float2 two = *reinterpret_cast<const float2*>(scores + r * 16 + odd * 8 + 2 * i);
            eight[i] = __floats2half2_rn(two.x * inverse, two.y * inverse);
        }
        if (row < S) *reinterpret_cast<uint4*>(out + head + size_t(row) * D + d * 16 + odd * 8) = *reinterpret_cast<uint4*>(eight);
        __syncwarp();
    }
}
