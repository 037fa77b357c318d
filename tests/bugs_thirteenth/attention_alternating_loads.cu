/* evoengine
name: attention_alternating_loads
precision: fp16
summary: mma.sync with 16 query rows a warp and weights in registers; values travel during the scores and the next keys during the second product
let:
  SHARED: 2 * 2 * 32 * (D + 8)
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 64)", "B*H"]
    block: [128]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int TILE = 32;   // keys

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING> __device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// Rows [start, start + TILE) of a head; rows behind the sequence become zero.
template <int D>
__device__ __forceinline__ void request(__half* tile, const __half* head, int start, int S) {
    for (int i = threadIdx.x; i < TILE * D / 8; i += 128) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        const bool inside = start + r < S;
        const __half* from = head + (inside ? static_cast<size_t>(start + r) * D + c : 0);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(shared_address(tile + r * (D + 8) + c)), "l"(from), "r"(inside ? 16 : 0)
                     : "memory");
    }
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float x, float y) {
    const __half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
          __half* __restrict__ out, int S, float scale) {
    constexpr int PITCH = D + 8;
    extern __shared__ __align__(16) __half shared[];
    __half* keys = shared;
    __half* values = shared + TILE * PITCH;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, t = lane % 4;
    const size_t head = static_cast<size_t>(blockIdx.y) * S * D;
    const int block_row = blockIdx.x * 64;
    const int row = block_row + warp * 16 + g;   // and row + 8
    const int visible = CAUSAL ? min(S, block_row + 64) : S;
    const int tiles = (visible + TILE - 1) / TILE;
    const float factor = scale * 1.44269504f;   // weights are powers of two

    request<D>(keys, k + head, 0, S);
    commit();

    unsigned fq[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int r = row + e % 2 * 8, c = d * 16 + e / 2 * 8 + t * 2;
            fq[d][e] = r < S ? *reinterpret_cast<const unsigned*>(q + head + static_cast<size_t>(r) * D + c) : 0u;
        }

    float acc[D / 8][4] = {};
    float peak[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};

    for (int tile = 0; tile < tiles; ++tile) {
        const int start = tile * TILE;
        request<D>(values, v + head, start, S);
        commit();
        wait<1>();
        __syncthreads();   // the keys are there

        float s[TILE / 8][4] = {};
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                const __half* from = keys + (n * 8 + g) * PITCH + d * 16 + t * 2;
                mma(s[n], fq[d], *reinterpret_cast<const unsigned*>(from),
                    *reinterpret_cast<const unsigned*>(from + 8));
            }
        __syncthreads();   // the keys have been used
        if (tile + 1 < tiles) request<D>(keys, k + head, start + TILE, S);
        commit();

        float high[2] = {peak[0], peak[1]};
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = start + n * 8 + t * 2 + e % 2;
                const int query = row + e / 2 * 8;
                const bool masked = key >= S || (CAUSAL && key > query);
                s[n][e] = masked ? -INFINITY : s[n][e] * factor;
                high[e / 2] = fmaxf(high[e / 2], s[n][e]);
            }
        float fade[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffffu, high[h], 1));
            high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffffu, high[h], 2));
            fade[h] = exp2f(peak[h] - high[h]);
            total[h] *= fade[h];
            peak[h] = high[h];
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) acc[n][e] *= fade[e / 2];
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                s[n][e] = exp2f(s[n][e] - high[e / 2]);
                total[e / 2] += s[n][e];
            }

        wait<1>();
        __syncthreads();   // the values are there
#pragma unroll
        for (int j = 0; j < TILE / 16; ++j) {
            const unsigned weights[4] = {pack(s[2 * j][0], s[2 * j][1]), pack(s[2 * j][2], s[2 * j][3]),
                                         pack(s[2 * j + 1][0], s[2 * j + 1][1]),
                                         pack(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
            for (int n = 0; n < D / 8; n += 2) {
                unsigned b[4];
                const __half* from = values + (j * 16 + lane % 16) * PITCH + n * 8 + lane / 16 * 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                             : "r"(shared_address(from)) : "memory");
                mma(acc[n], weights, b[0], b[1]);
                mma(acc[n + 1], weights, b[2], b[3]);
            }
        }
        __syncthreads();   // the values have been used
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        const int r = row + h * 8;
        if (r >= S) continue;
        const float inverse = 1.0f / total[h];
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<unsigned*>(out + head + static_cast<size_t>(r) * D + n * 8 + t * 2) =
                pack(acc[n][2 * h] * inverse, acc[n][2 * h + 1] * inverse);
    }
}
