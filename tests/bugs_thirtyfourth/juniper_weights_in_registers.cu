/* evoengine
name: juniper_weights_in_registers
precision: fp16
summary: mma.sync attention, weights stay in registers, keys and values arrive by cp.async in two stages
tunables:
  WARPS: [4, 2, 8]
let:
  ROWS: 16*WARPS
launches:
  - kernel: juniper<D, causal>
    grid: ["ceil_div(S, ROWS)", "B*H"]
    block: [32*WARPS]
    shared: 2*2*32*(D+8)*2
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

// A warp owns 16 queries from start to finish. In the m16n8k16 layout lane = 4 * g + t holds, of
// every 8 columns, columns 2t and 2t+1 of rows g and g+8.
constexpr int KEYS = 32;
constexpr int THREADS = 32 * WARPS;
constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ unsigned smem(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp16(__half* to, const __half* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void ldsm4(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)) : "memory");
}

__device__ __forceinline__ void ldsm4_trans(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)) : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Rows first .. first+KEYS-1 of k and v; rows from S on become zeros.
template <int D>
__device__ __forceinline__ void fetch(__half* sk, __half* sv, const __half* k, const __half* v, int first, int S) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        const bool inside = first + r < S;
        const size_t from = inside ? size_t(first + r) * D + c : 0;
        cp16(sk + r * (D + 8) + c, k + from, inside ? 16 : 0);
        cp16(sv + r * (D + 8) + c, v + from, inside ? 16 : 0);
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
juniper(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
        __half* __restrict__ out, int S, float scale) {
    constexpr int LD = D + 8, TILE = KEYS * LD;
    extern __shared__ __align__(16) __half stage_memory[];
    __half* sk = stage_memory;             // [2][KEYS][LD]
    __half* sv = stage_memory + 2 * TILE;  // [2][KEYS][LD]

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int block_row = blockIdx.x * 16 * WARPS;
    const int row0 = block_row + warp * 16 + g;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float factor = scale * LOG2E;

    // Queries go straight from global memory into fragments: each is used by this warp alone.
    unsigned a[D / 16][4];
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + i % 2 * 8, col = c * 16 + i / 2 * 8 + 2 * t;
            a[c][i] = row < S ? *reinterpret_cast<const unsigned*>(q + head + size_t(row) * D + col) : 0u;
        }
    }

    float o[D / 8][4] = {};
    float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0f, 0.0f};

    const int end = CAUSAL ? min(S, block_row + 16 * WARPS) : S;
    const int tiles = (end + KEYS - 1) / KEYS;
    fetch<D>(sk, sv, k + head, v + head, 0, S);
    asm volatile("cp.async.commit_group;" ::: "memory");

    for (int tile = 0; tile < tiles; ++tile) {
        const int now = tile % 2, next = 1 - now;
        if (tile + 1 < tiles) fetch<D>(sk + next * TILE, sv + next * TILE, k + head, v + head, (tile + 1) * KEYS, S);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();

        float s[KEYS / 8][4] = {};
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
            for (int c = 0; c < D; c += 32) {
                unsigned b[4];
                ldsm4(b, sk + now * TILE + (n * 8 + lane % 8) * LD + c + lane / 8 * 8);
                mma(s[n], a[c / 16], b[0], b[1]);
                mma(s[n], a[c / 16 + 1], b[2], b[3]);
            }
        }

        float top[2] = {m[0], m[1]};
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = tile * KEYS + n * 8 + 2 * t + e % 2, row = row0 + e / 2 * 8;
                const bool seen = key < S && (!CAUSAL || key <= row);
                s[n][e] = seen ? s[n][e] * factor : -INFINITY;
                top[e / 2] = fmaxf(top[e / 2], s[n][e]);
            }
        }
        float shrink[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 1));
            top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 2));
            shrink[h] = exp2f(m[h] - top[h]);
            m[h] = top[h];
            l[h] *= shrink[h];
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) o[n][e] *= shrink[e / 2];
        }

        // An accumulator of 16x16 scores has the layout of an A fragment of 16x16 weights.
#pragma unroll
        for (int j = 0; j < KEYS / 16; ++j) {
            unsigned p[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int n = 2 * j + i / 2, h = i % 2;
                const __half2 w = __floats2half2_rn(exp2f(s[n][2 * h] - m[h]), exp2f(s[n][2 * h + 1] - m[h]));
                const float2 rounded = __half22float2(w);
                l[h] += rounded.x + rounded.y;
                p[i] = *reinterpret_cast<const unsigned*>(&w);
            }
#pragma unroll
            for (int d = 0; d < D; d += 16) {
                unsigned b[4];
                ldsm4_trans(b, sv + now * TILE + (j * 16 + lane % 16) * LD + d + lane / 16 * 8);
                mma(o[d / 8], p, b[0], b[1]);
                mma(o[d / 8 + 1], p, b[2], b[3]);
            }
        }
        __syncthreads();  // the next round overwrites this stage
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l[h] += __shfl_xor_sync(0xffffffffu, l[h], 1);
        l[h] += __shfl_xor_sync(0xffffffffu, l[h], 2);
        const int row = row0 + h * 8;
        if (row >= S) continue;
        const float inverse = 1.0f / l[h];
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
            *reinterpret_cast<__half2*>(out + head + size_t(row) * D + n * 8 + 2 * t) =
                __floats2half2_rn(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
        }
    }
}
