/* evoengine
name: attention_producer_warp
precision: fp16
summary: one warp fills a ring of K and V tiles with cp.async, the others multiply them with mma.sync; named barriers hand the slots over
tunables:
  CONSUMERS: [4, 2, 8]      # warps that multiply, 16 query rows each
  RING: [2, 3]              # K and V tiles in shared memory
  TILE_KEYS: [32, 16]       # keys of a tile
let:
  SHARED: RING * 2 * TILE_KEYS * (D + 8) * 2
require: [SHARED <= MAX_SHARED_BYTES]
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 16 * CONSUMERS)", "B*H"]
    block: ["32 * (CONSUMERS + 1)"]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
// Every slot of the ring has two named barriers. The producer arrives at the full one when a tile has landed and the
// consumers wait there; the consumers arrive at the empty one when they have read the tile and the producer waits there.
#include <cuda_fp16.h>

constexpr int BLOCK_ROWS = 16 * CONSUMERS;
constexpr int ALL_THREADS = 32 * (CONSUMERS + 1);
constexpr int FULL = 1, EMPTY = FULL + RING;      // barrier 0 belongs to __syncthreads
constexpr unsigned ONES = 0x3c003c00u;            // two halves of 1

template <int D> struct ring_slot {               // eight halves of padding: the rows of a fragment use all banks
    __half keys[TILE_KEYS][D + 8];
    __half values[TILE_KEYS][D + 8];
};

__device__ __forceinline__ void barrier_sync(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(ALL_THREADS) : "memory");
}
__device__ __forceinline__ void barrier_arrive(int id) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(ALL_THREADS) : "memory");
}
__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void copy_16(__half* to, const __half* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned two_halves(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }
__device__ __forceinline__ unsigned packed(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
}

template <int D>
__device__ void produce(ring_slot<D>* ring, const __half* k, const __half* v, int tiles, int S) {
    const int lane = threadIdx.x % 32;
    for (int tile = 0; tile < tiles; ++tile) {
        const int slot = tile % RING;
        if (tile >= RING) barrier_sync(EMPTY + slot);
        for (int i = lane; i < TILE_KEYS * (D / 8); i += 32) {
            const int row = i / (D / 8), column = i % (D / 8) * 8, key = tile * TILE_KEYS + row;
            const bool inside = key < S;           // a stale NaN would survive a weight of zero
            const size_t at = inside ? size_t(key) * D + column : 0;
            copy_16(&ring[slot].keys[row][column], k + at, inside);
            copy_16(&ring[slot].values[row][column], v + at, inside);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (tile > 0) {                            // the tile before has landed while this one is on its way
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            barrier_arrive(FULL + (tile - 1) % RING);
        }
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    barrier_arrive(FULL + (tiles - 1) % RING);
}

template <int D, bool CAUSAL>
__device__ void consume(const ring_slot<D>* ring, const __half* q, __half* out, int first_row, int tiles, int S, float factor) {
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int rows[2] = {first_row + group, first_row + group + 8};
    unsigned query[D / 16][4];
    for (int i = 0; i < D / 16 * 4; ++i) {         // registers 0 and 2: the upper row, 1 and 3: the lower one
        const int row = rows[i % 2], column = i / 4 * 16 + i % 4 / 2 * 8 + pair;
        query[i / 4][i % 4] = row < S ? two_halves(q + size_t(row) * D + column) : 0u;
    }
    float result[D / 8][4] = {}, sums[4] = {};
    float top[2] = {-INFINITY, -INFINITY};

    for (int tile = 0; tile < tiles; ++tile) {
        const int slot = tile % RING;
        barrier_sync(FULL + slot);
        float score[TILE_KEYS / 8][4] = {};
        for (int d = 0; d < D / 16; ++d)
            for (int n = 0; n < TILE_KEYS / 8; ++n) {
                const __half* from = &ring[slot].keys[n * 8 + group][d * 16 + pair];
                mma(score[n], query[d], two_halves(from), two_halves(from + 8));
            }
        const int first_key = tile * TILE_KEYS;
        if (first_key + TILE_KEYS > (CAUSAL ? min(S, first_row + 1) : S))
            for (int i = 0; i < TILE_KEYS / 2; ++i) {
                const int key = first_key + i / 4 * 8 + pair + i % 2;
                if (key >= S || (CAUSAL && key > rows[i % 4 / 2])) score[i / 4][i % 4] = -INFINITY;
            }
        for (int r = 0; r < 2; ++r) {
            float largest = top[r];
            for (int n = 0; n < TILE_KEYS / 8; ++n)
                largest = fmaxf(largest, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
            const float shrink = exp2f((top[r] - largest) * factor);
            top[r] = largest;                      // finite: the first tile has a key for every row
            for (int n = 0; n < TILE_KEYS / 8; ++n)
                for (int e = 2 * r; e < 2 * r + 2; ++e) score[n][e] = exp2f((score[n][e] - largest) * factor);
            sums[2 * r] *= shrink;
            for (int n = 0; n < D / 8; ++n) result[n][2 * r] *= shrink, result[n][2 * r + 1] *= shrink;
        }
        for (int j = 0; j < TILE_KEYS / 16; ++j) {
            const unsigned weights[4] = {packed(score[2 * j][0], score[2 * j][1]), packed(score[2 * j][2], score[2 * j][3]),
                                         packed(score[2 * j + 1][0], score[2 * j + 1][1]), packed(score[2 * j + 1][2], score[2 * j + 1][3])};
            mma(sums, weights, ONES, ONES);        // the denominator sums what the numerator multiplies: rounded weights
            const unsigned from = shared_address(&ring[slot].values[j * 16 + lane % 16][0]);
            for (int n = 0; n < D / 8; ++n) {
                unsigned b0, b1;
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(from + n * 16) : "memory");
                mma(result[n], weights, b0, b1);
            }
        }
        if (tile + RING < tiles) barrier_arrive(EMPTY + slot);
    }
    for (int r = 0; r < 2; ++r) {
        if (rows[r] >= S) continue;
        const float inverse = 1.0f / sums[2 * r];
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<unsigned*>(out + size_t(rows[r]) * D + n * 8 + pair) = packed(result[n][2 * r] * inverse, result[n][2 * r + 1] * inverse);
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(ALL_THREADS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    extern __shared__ __align__(16) unsigned char memory[];
    auto* ring = reinterpret_cast<ring_slot<D>*>(memory);
    const size_t head = size_t(blockIdx.y) * S * D;
    const int warp = threadIdx.x / 32, block_row = blockIdx.x * BLOCK_ROWS;
    const int seen = CAUSAL ? min(S, block_row + BLOCK_ROWS) : S, tiles = (seen + TILE_KEYS - 1) / TILE_KEYS;
    if (warp == CONSUMERS)
        produce<D>(ring, k + head, v + head, tiles, S);
    else
        consume<D, CAUSAL>(ring, q + head, out + head, block_row + warp * 16, tiles, S, scale * 1.4426950408889634f);
}
