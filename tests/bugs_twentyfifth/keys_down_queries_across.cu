/* evoengine
name: keys_down_queries_across
precision: fp16
summary: transposed scores on mma.sync with one loading warp, named barriers and movmatrix between the two products
tunables:
  QUERY_WARPS: [4, 2, 1]     # warps that compute; each owns 16 queries
  KEY_TILE: [32, 16, 64]     # keys of a slot
  SLOTS: [2, 3]              # K and V tiles in shared memory
let:
  SHARED: SLOTS * 2 * KEY_TILE * (D + 8) * 2
require: [SHARED <= MAX_SHARED_BYTES]
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 16*QUERY_WARPS)", "B*H"]
    block: ["32*(QUERY_WARPS + 1)"]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
// The scores are kept transposed: keys run down a fragment, queries across it. A lane then holds whole columns of
// both the scores and the output, so one factor for each of its four queries rescales everything it has.
#include <cuda_fp16.h>

constexpr int COMPUTING = 32 * QUERY_WARPS, EVERYONE = COMPUTING + 32;
constexpr unsigned ALL_LANES = 0xffffffffu;
#define MINUS_INF __int_as_float(0xff800000)

__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// A named barrier for each direction of a slot. Those who only announce something do not wait for the others.
struct slot_barriers {
    static __device__ int full(int slot) { return 1 + slot; }
    static __device__ int empty(int slot) { return 1 + SLOTS + slot; }
    static __device__ void wait(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(EVERYONE) : "memory"); }
    static __device__ void announce(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(EVERYONE) : "memory"); }
};

__device__ __forceinline__ void copy_16(unsigned to, const __half* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void load_matrices(unsigned (&a)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void load_transposed(unsigned (&a)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Two neighbours of a row as halves, then the 8x8 matrix of the warp turned over.
__device__ __forceinline__ unsigned turned(float left, float right) {
    __half2 both = __floats2half2_rn(left, right);
    unsigned result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(*reinterpret_cast<unsigned*>(&both)));
    return result;
}

template <int D> __device__ void fetch_tiles(const __half* keys, const __half* values, __half* ring, int tiles, int S) {
    constexpr int PITCH = D + 8, CHUNKS = D / 8;
    for (int t = 0; t < tiles; ++t) {
        const int slot = t % SLOTS;
        if (t >= SLOTS) slot_barriers::wait(slot_barriers::empty(slot));
        __half *k_slot = ring + slot * 2 * KEY_TILE * PITCH, *v_slot = k_slot + KEY_TILE * PITCH;
        for (int i = threadIdx.x % 32; i < KEY_TILE * CHUNKS; i += 32) {
            const int row = i / CHUNKS, column = i % CHUNKS * 8, key = t * KEY_TILE + row;
            const bool inside = key < S;        // rows beyond the end become zeros, since zero times NaN is NaN
            const size_t from = inside ? size_t(key) * D + column : 0;
            copy_16(shared_address(k_slot + row * PITCH + column), keys + from, inside);
            copy_16(shared_address(v_slot + row * PITCH + column), values + from, inside);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (t > 0) {                            // the tile before this one has landed: its readers may start
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            slot_barriers::announce(slot_barriers::full((t - 1) % SLOTS));
        }
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    slot_barriers::announce(slot_barriers::full((tiles - 1) % SLOTS));
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(EVERYONE)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    constexpr int PITCH = D + 8;
    extern __shared__ __align__(16) __half ring[];
    const size_t head = size_t(blockIdx.y) * S * D;
    const int block_first = blockIdx.x * 16 * QUERY_WARPS;
    const int key_end = CAUSAL ? min(S, block_first + 16 * QUERY_WARPS) : S;
    const int tiles = (key_end + KEY_TILE - 1) / KEY_TILE;
    if (threadIdx.x >= COMPUTING) return fetch_tiles<D>(k + head, v + head, ring, tiles, S);
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int first_query = block_first + threadIdx.x / 32 * 16;
    unsigned queries[D / 16][2][2];             // as the second operand: column `group`, rows `pair`, + 1, + 8, + 9
    for (int half = 0; half < 2; ++half) {
        const int row = min(first_query + half * 8 + group, S - 1);
        const __half* from = q + head + size_t(row) * D + pair;
        for (int i = 0; i < D / 8; ++i) queries[i / 2][half][i % 2] = *reinterpret_cast<const unsigned*>(from + i * 8);
    }
    const float to_log2 = scale * 1.4426950408889634f;
    float acc[D / 16][2][4] = {}, peak[2][2], mass[2][2] = {};
    for (int i = 0; i < 4; ++i) peak[i / 2][i % 2] = MINUS_INF;

    for (int t = 0; t < tiles; ++t) {
        const int slot = t % SLOTS, first_key = t * KEY_TILE;
        slot_barriers::wait(slot_barriers::full(slot));
        const unsigned k_at = shared_address(ring + slot * 2 * KEY_TILE * PITCH), v_at = k_at + KEY_TILE * PITCH * 2;
        if (!CAUSAL || first_key < first_query + 16) {
            float s[KEY_TILE / 16][2][4] = {};
            for (int m = 0; m < KEY_TILE / 16; ++m)
                for (int d = 0; d < D / 16; ++d) {
                    unsigned a[4];
                    load_matrices(a, k_at + ((m * 16 + lane % 16) * PITCH + d * 16 + lane / 16 * 8) * 2);
                    multiply(s[m][0], a, queries[d][0][0], queries[d][0][1]);
                    multiply(s[m][1], a, queries[d][1][0], queries[d][1][1]);
                }
            for (int half = 0; half < 2; ++half)
                for (int side = 0; side < 2; ++side) {
                    const int visible = CAUSAL ? min(S, first_query + half * 8 + pair + side + 1) : S;
                    float top = peak[half][side];
                    for (int i = 0; i < KEY_TILE / 8; ++i) {
                        float& score = s[i / 2][half][i % 2 * 2 + side];
                        score = first_key + i * 8 + group < visible ? score * to_log2 : MINUS_INF;
                        top = fmaxf(top, score);
                    }
                    for (int step = 4; step < 32; step *= 2) top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
                    const float shrink = exp2f(peak[half][side] - top);   // the first key is visible to all: never -inf - -inf
                    peak[half][side] = top, mass[half][side] *= shrink;
                    for (int i = 0; i < KEY_TILE / 8; ++i) {
                        float& weight = s[i / 2][half][i % 2 * 2 + side];
                        mass[half][side] += weight = exp2f(weight - top);
                    }
                    for (int d = 0; d < D / 16; ++d) acc[d][half][side] *= shrink, acc[d][half][2 + side] *= shrink;
                }
            for (int m = 0; m < KEY_TILE / 16; ++m) {
                unsigned weights[2][2];
                for (int i = 0; i < 4; ++i) weights[i / 2][i % 2] = turned(s[m][i / 2][i % 2 * 2], s[m][i / 2][i % 2 * 2 + 1]);
                for (int d = 0; d < D / 16; ++d) {
                    unsigned a[4];
                    const int row = m * 16 + lane % 8 + lane / 16 * 8, column = d * 16 + lane / 8 % 2 * 8;
                    load_transposed(a, v_at + (row * PITCH + column) * 2);
                    multiply(acc[d][0], a, weights[0][0], weights[0][1]);
                    multiply(acc[d][1], a, weights[1][0], weights[1][1]);
                }
            }
        }
        if (t + SLOTS < tiles) slot_barriers::announce(slot_barriers::empty(slot));
    }
    for (int half = 0; half < 2; ++half) {
        float inverse[2];
        for (int side = 0; side < 2; ++side) {
            float total = mass[half][side];     // so far only of the keys of this lane
            for (int step = 4; step < 32; step *= 2) total += __shfl_xor_sync(ALL_LANES, total, step);
            inverse[side] = 1.0f / total;
        }
        const int query = first_query + half * 8 + group;     // after the turn a lane holds a row of the output
        __half* to = out + head + size_t(query) * D + pair;
        for (int d = 0; d < D / 16; ++d) {
            const unsigned low = turned(acc[d][half][0] * inverse[0], acc[d][half][1] * inverse[1]);
            const unsigned high = turned(acc[d][half][2] * inverse[0], acc[d][half][3] * inverse[1]);
            if (query >= S) continue;
            *reinterpret_cast<unsigned*>(to + d * 16) = low;
            *reinterpret_cast<unsigned*>(to + d * 16 + 8) = high;
        }
    }
}
