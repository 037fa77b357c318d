/* evoengine
name: attention_ends_meet
precision: fp16
summary: attention on mma.sync where a block takes one tile of queries from each end, with a softmax that is rescaled only when its maximum grows a lot
tunables:
  WARPS: [2, 4, 1]       # 16 query rows for each
  KEYS: [32, 64, 16]     # keys of a step
let:
  TILES: ceil_div(S, 16*WARPS)
launches:
  - kernel: attendFromBothEnds<D, causal>
    grid: ["ceil_div(TILES, 2)", "B*H"]
    block: [WARPS*32]
    shared: 8*KEYS*(D + 8)
    args: [q, k, v, out, S, TILES, scale]
*/
// Under a causal mask the last tile of queries has the most keys and the first one the fewest. A block takes tile
// n - 1 - i and then tile i, so that all blocks have the same work.
#include <cuda_fp16.h>

constexpr int ROWS = 16 * WARPS, THREADS = 32 * WARPS;
// Powers of two that weights may grow to before they are rescaled; a half holds up to 2^16.
constexpr float SLACK = 8.0f, NONE = -INFINITY;

__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void closeGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER> __device__ __forceinline__ void awaitGroups() { asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory"); }

#define LOAD_MATRICES(m, row, TURNED)                                                                       \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TURNED ".shared.b16 {%0, %1, %2, %3}, [%4];"               \
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(unsigned(__cvta_generic_to_shared(row))) : "memory")
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned twoHalves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attendFromBothEnds(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                   __half* __restrict__ out, int S, int tiles, float scale) {
    constexpr int PITCH = D + 8;                 // eight rows of a matrix start in different banks
    constexpr int SLOT = 2 * KEYS * PITCH;       // keys, then values
    extern __shared__ __align__(16) __half ring[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int group = lane >> 2, pair = (lane & 3) * 2;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float toLog2 = scale * 1.4426950408889634f;

    float pivot[2], sum[2], o[D / 8][4];         // of rows `group` and `group + 8` of the warp
    for (int turn = 0; turn < 2; ++turn) {
        const int near = blockIdx.x, far = tiles - 1 - near;
        if (turn == 1 && near == far) break;     // the tile in the middle has no partner
        const int blockRow = (turn == 0 ? far : near) * ROWS, firstRow = blockRow + warp * 16;
        const int keyEnd = CAUSAL ? min(S, blockRow + ROWS) : S;
        const int steps = (keyEnd + KEYS - 1) / KEYS;

        auto fetch = [&](int step) {
            __half* slot = ring + (step & 1) * SLOT;
            for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
                const int row = i / (D / 8), column = i % (D / 8) * 8, key = step * KEYS + row;
                const size_t from = head + (key < keyEnd ? size_t(key) * D + column : 0);
                copy16(slot + row * PITCH + column, k + from, key < keyEnd);
                copy16(slot + (KEYS + row) * PITCH + column, v + from, key < keyEnd);
            }
        };
        fetch(0);
        closeGroup();
        unsigned qFrag[D / 16][4];               // read once, so it needs no shared memory
#pragma unroll
        for (int i = 0; i < D / 4; ++i) {
            const int row = firstRow + group + (i & 1) * 8, column = i / 4 * 16 + (i & 2) * 4 + pair;
            qFrag[i / 4][i % 4] = row < S ? *reinterpret_cast<const unsigned*>(q + head + size_t(row) * D + column) : 0u;
        }
        pivot[0] = pivot[1] = NONE;
        sum[0] = sum[1] = 0.0f;
        for (int n = 0; n < D / 8; ++n) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.0f;

        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) fetch(step + 1);
            closeGroup();                        // maybe of nothing, so that one group is always later than this step's
            awaitGroups<1>();
            __syncthreads();
            const __half *keys = ring + (step & 1) * SLOT, *values = keys + KEYS * PITCH;
            const int firstKey = step * KEYS;

            float s[KEYS / 8][4] = {};
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                for (int n = 0; n < KEYS / 16; ++n) {
                    unsigned b[4];
                    LOAD_MATRICES(b, keys + (n * 16 + (lane & 7) + (lane >> 4) * 8) * PITCH + d * 16 + (lane >> 3 & 1) * 8, "");
                    multiply(s[2 * n], qFrag[d], b[0], b[1]);
                    multiply(s[2 * n + 1], qFrag[d], b[2], b[3]);
                }
            if (firstKey + KEYS > S || (CAUSAL && firstKey + KEYS - 1 > firstRow))
                for (int i = 0; i < KEYS / 2; ++i) {
                    const int row = firstRow + group + (i & 2) * 4, key = firstKey + i / 4 * 8 + pair + (i & 1);
                    if (key >= S || (CAUSAL && key > row)) s[i / 4][i % 4] = NONE;
                }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float top = NONE;
                for (int n = 0; n < KEYS / 8; ++n) top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 2)) * toLog2;
                if (top > pivot[half] + SLACK) {          // in the first step always: every row sees key 0
                    const float shrink = exp2f(pivot[half] - top);
                    pivot[half] = top;
                    sum[half] *= shrink;
                    for (int n = 0; n < D / 8; ++n) o[n][2 * half] *= shrink, o[n][2 * half + 1] *= shrink;
                }
                for (int i = 0; i < KEYS / 4; ++i) {
                    float& weight = s[i / 2][2 * half + i % 2];
                    weight = exp2f(fmaf(weight, toLog2, -pivot[half]));
                    sum[half] += weight;
                }
            }
#pragma unroll
            for (int j = 0; j < KEYS / 16; ++j) {
                const float (&left)[4] = s[2 * j], (&right)[4] = s[2 * j + 1];
                const unsigned p[4] = {twoHalves(left[0], left[1]), twoHalves(left[2], left[3]),
                                       twoHalves(right[0], right[1]), twoHalves(right[2], right[3])};
                for (int n = 0; n < D / 16; ++n) {
                    unsigned b[4];
                    LOAD_MATRICES(b, values + (j * 16 + (lane & 15)) * PITCH + n * 16 + (lane >> 4) * 8, ".trans");
                    multiply(o[2 * n], p, b[0], b[1]);
                    multiply(o[2 * n + 1], p, b[2], b[3]);
                }
            }
            __syncthreads();                     // all have left the slot before it is filled again
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = sum[half] + __shfl_xor_sync(~0u, sum[half], 1);
            total += __shfl_xor_sync(~0u, total, 2);
            const int row = firstRow + half * 8 + group;
            if (row >= S) continue;
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2*>(out + head + size_t(row) * D + n * 8 + pair) =
                    __floats2half2_rn(o[n][2 * half] / total, o[n][2 * half + 1] / total);
        }
    }
}
