/* evoengine
name: attention_named_ring
precision: fp16
summary: one warp fills a ring of K tiles and one a ring of V tiles, named barriers hand them to warps of 16 query rows
tunables:
  TILE_KEYS: [32, 64]           # keys of a tile at D = 64
  DEPTH: [2, 3]                 # tiles in each ring
  ROW_WARPS: [4, 2, 8]          # warps that compute
let:
  KEYS: TILE_KEYS if D <= 64 else TILE_KEYS // 2
  RINGS: 4 * DEPTH * KEYS * (D + 8)
require: ["RINGS <= MAX_SHARED_BYTES"]
launches:
  - kernel: attend<D, KEYS, causal>
    grid: ["ceil_div(S, 16*ROW_WARPS)", "B*H"]
    block: ["32*ROW_WARPS + 64"]
    shared: RINGS
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
#include <cstdint>
constexpr float kLog2e = 1.4426950408889634f;
constexpr int kPartners = 32 * ROW_WARPS + 32;       // one filling warp and all computing ones meet at a barrier
enum Ring { kKeys, kValues };
enum State { kFull, kFree };

// Barrier 0 is that of __syncthreads.
__device__ __forceinline__ int barrierOf(Ring ring, int tile, State state) { return 1 + (ring * DEPTH + tile % DEPTH) * 2 + state; }
__device__ __forceinline__ void await(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(kPartners) : "memory"); }
__device__ __forceinline__ void signal(int barrier) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(kPartners) : "memory"); }

__device__ __forceinline__ uint32_t sharedAddress(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
template <int PENDING> __device__ __forceinline__ void awaitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

#define LOAD_MATRICES(R, FROM, ORDER)                                                             \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" ORDER ".shared.b16 {%0,%1,%2,%3}, [%4];"          \
                 : "=r"(R[0]), "=r"(R[1]), "=r"(R[2]), "=r"(R[3]) : "r"(sharedAddress(FROM)) : "memory")
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint32_t halves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
}
// The work of a filling warp. A tile is announced one step late, so that the copies of two are on their way at once.
template <int D, int KEYS>
__device__ void fillRing(Ring ring, __half* slots, const __half* source, int tiles, int S) {
    constexpr int PITCH = D + 8, PIECES = D / 8;
    for (int t = 0; t < tiles; ++t) {
        if (t >= DEPTH) await(barrierOf(ring, t, kFree));
        for (int i = threadIdx.x % 32; i < KEYS * PIECES; i += 32) {
            const int row = i / PIECES, column = i % PIECES * 8, key = t * KEYS + row;
            const bool inside = key < S;         // else zeros: a weight of zero times stale memory must not be NaN
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         ::"r"(sharedAddress(slots + (t % DEPTH * KEYS + row) * PITCH + column)),
                         "l"(source + (inside ? size_t(key) * D + column : 0)), "r"(inside ? 16 : 0) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (t > 0) {
            awaitCopies<1>();
            signal(barrierOf(ring, t - 1, kFull));
        }
    }
    awaitCopies<0>();
    signal(barrierOf(ring, tiles - 1, kFull));
}

template <int D, int KEYS, bool CAUSAL>
__global__ void __launch_bounds__(32 * ROW_WARPS + 64)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int S, float scale) {
    constexpr int PITCH = D + 8;                 // 16 bytes more a row: ldmatrix meets every bank once
    extern __shared__ __align__(128) __half keyRing[];           // [DEPTH][KEYS][PITCH]
    __half* valueRing = keyRing + DEPTH * KEYS * PITCH;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blockRow = blockIdx.x * 16 * ROW_WARPS;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int blockEnd = CAUSAL ? min(S, blockRow + 16 * ROW_WARPS) : S;
    const int tiles = (blockEnd + KEYS - 1) / KEYS;
    if (warp >= ROW_WARPS) {
        if (warp == ROW_WARPS) fillRing<D, KEYS>(kKeys, keyRing, k + head, tiles, S);
        else fillRing<D, KEYS>(kValues, valueRing, v + head, tiles, S);
        return;
    }
    const int row0 = blockRow + warp * 16 + lane / 4, pair = lane % 4 * 2;   // this lane: rows row0 and row0 + 8
    uint32_t query[D / 16][4];
    for (int d = 0; d < D / 16; ++d)
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + i % 2 * 8, column = d * 16 + pair + i / 2 * 8;
            query[d][i] = row < S ? *reinterpret_cast<const uint32_t*>(q + head + size_t(row) * D + column) : 0u;
        }
    const float toExponent = scale * kLog2e;
    float result[D / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
    for (int t = 0; t < tiles; ++t) {
        const __half* keyTile = keyRing + t % DEPTH * KEYS * PITCH;
        const __half* valueTile = valueRing + t % DEPTH * KEYS * PITCH;
        const bool wanted = t + DEPTH < tiles;   // somebody waits for the slots of this tile
        float s[KEYS / 8][4] = {};
        await(barrierOf(kKeys, t, kFull));
        for (int d = 0; d < D / 16; ++d)
            for (int n = 0; n < KEYS / 16; ++n) {
                uint32_t b[4];
                LOAD_MATRICES(b, keyTile + (n * 16 + lane % 8 + lane / 16 * 8) * PITCH + d * 16 + lane / 8 % 2 * 8, "");
                multiply(s[2 * n], query[d], b[0], b[1]);
                multiply(s[2 * n + 1], query[d], b[2], b[3]);
            }
        if (wanted) signal(barrierOf(kKeys, t, kFree));
        for (int h = 0; h < 2; ++h) {
            const int limit = (CAUSAL ? min(S, row0 + h * 8 + 1) : S) - t * KEYS;
            float best = top[h];
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 0; e < 2; ++e) {
                    float& score = s[n][2 * h + e];
                    score = n * 8 + pair + e < limit ? score * toExponent : -INFINITY;
                    best = fmaxf(best, score);
                }
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
            const float decay = exp2f(top[h] - best);        // key 0 is seen by all, so best is finite
            top[h] = best;
            total[h] *= decay;
            for (int n = 0; n < D / 8; ++n) result[n][2 * h] *= decay, result[n][2 * h + 1] *= decay;
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 0; e < 2; ++e) total[h] += s[n][2 * h + e] = exp2f(s[n][2 * h + e] - best);
        }
        await(barrierOf(kValues, t, kFull));
        for (int j = 0; j < KEYS / 16; ++j) {
            const uint32_t a[4] = {halves(s[2 * j][0], s[2 * j][1]), halves(s[2 * j][2], s[2 * j][3]),
                                   halves(s[2 * j + 1][0], s[2 * j + 1][1]), halves(s[2 * j + 1][2], s[2 * j + 1][3])};
            for (int n = 0; n < D / 16; ++n) {
                uint32_t b[4];
                LOAD_MATRICES(b, valueTile + (j * 16 + lane % 16) * PITCH + n * 16 + lane / 16 * 8, ".trans");
                multiply(result[2 * n], a, b[0], b[1]);
                multiply(result[2 * n + 1], a, b[2], b[3]);
            }
        }
        if (wanted) signal(barrierOf(kValues, t, kFree));
    }

    for (int h = 0; h < 2; ++h) {
        float sum = total[h];                    // of this lane's columns alone
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        const int row = row0 + h * 8;
        for (int n = 0; n < D / 8 && row < S; ++n)
            *reinterpret_cast<uint32_t*>(out + head + size_t(row) * D + n * 8 + pair) =
                halves(result[n][2 * h] / sum, result[n][2 * h + 1] / sum);
    }
}
