/* evoengine
name: heron_mma_two_stages
precision: fp16
summary: mma.sync with queries and weights in registers; keys and values copied one tile ahead
tunables:
  WARPS: [4, 2]
let:
  ROWS: 16 * WARPS
launches:
  - kernel: "heron::attend<D, causal>"
    grid: ["ceil_div(S, ROWS)", B * H]
    block: [32 * WARPS]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

namespace heron {

constexpr int kKeys = 32;            // keys in a tile
constexpr int kThreads = 32 * WARPS;
constexpr int kRows = 16 * WARPS;    // queries of a block

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// 16 bytes, or zeros if there is nothing to copy.
__device__ __forceinline__ void copy16(__half* to, const __half* from, bool present) {
    const int bytes = present ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_until() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

/// c += a * b for one 16x8x16 product.
__device__ __forceinline__ void mma_16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ldmatrix_x2_trans(unsigned& b0, unsigned& b1, const __half* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b0), "=r"(b1) : "r"(shared_address(row)) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, int LD>
__device__ __forceinline__ void fetch_tile(__half* tile, const __half* head, int first, int S) {
    constexpr int kPieces = D / 8;
    for (int i = threadIdx.x; i < kKeys * kPieces; i += kThreads) {
        const int key = i / kPieces, piece = i % kPieces;
        const bool present = first + key < S;
        copy16(tile + key * LD + piece * 8, head + size_t(present ? first + key : 0) * D + piece * 8, present);
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(kThreads)
attend(const __half* q, const __half* k, const __half* v, __half* out, int S, float scale) {
    constexpr int LD = D + 8;  // keeps the rows of a fragment in different banks
    __shared__ __align__(16) __half k_tile[2][kKeys * LD];
    __shared__ __align__(16) __half v_tile[2][kKeys * LD];

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane / 4, quad = lane % 4;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int block_row = blockIdx.x * kRows;
    const int row0 = block_row + warp * 16 + group;  // this lane also has row0 + 8
    const float to_log2 = scale * 1.4426950408889634f;

    unsigned qa[D / 16][4];
#pragma unroll
    for (int kk = 0; kk < D / 16; ++kk)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = row0 + e % 2 * 8, column = kk * 16 + quad * 2 + e / 2 * 8;
            qa[kk][e] = row < S ? *reinterpret_cast<const unsigned*>(q + head + size_t(row) * D + column) : 0u;
        }

    float acc[D / 8][4] = {};
    float peak[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};

    const int end = CAUSAL ? min(S, block_row + kRows) : S;
    const int tiles = (end + kKeys - 1) / kKeys;

    fetch_tile<D, LD>(k_tile[0], k + head, 0, S);
    fetch_tile<D, LD>(v_tile[0], v + head, 0, S);
    commit();

    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile & 1, first = tile * kKeys;
        if (tile + 1 < tiles) {
            fetch_tile<D, LD>(k_tile[stage ^ 1], k + head, first + kKeys, S);
            fetch_tile<D, LD>(v_tile[stage ^ 1], v + head, first + kKeys, S);
        }
        commit();
        wait_until<1>();
        __syncthreads();

        // scores of 16 queries and 32 keys
        float s[kKeys / 8][4] = {};
#pragma unroll
        for (int kk = 0; kk < D / 16; ++kk)
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n) {
                const __half* b = k_tile[stage] + (n * 8 + group) * LD + kk * 16 + quad * 2;
                mma_16816(s[n], qa[kk], *reinterpret_cast<const unsigned*>(b),
                          *reinterpret_cast<const unsigned*>(b + 8));
            }

#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = first + n * 8 + quad * 2 + e % 2, row = row0 + e / 2 * 8;
                const bool seen = key < S && (!CAUSAL || key <= row);
                s[n][e] = seen ? s[n][e] * to_log2 : -INFINITY;
            }

        // online softmax; h is 0 for row0 and 1 for row0 + 8
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float high = peak[h];
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n) high = fmaxf(high, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
            const float shrink = exp2f(peak[h] - high);
            peak[h] = high;
            float part = 0.0f;
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    s[n][e] = exp2f(s[n][e] - high);
                    part += s[n][e];
                }
            total[h] = total[h] * shrink + part;  // of this lane's keys; lanes are added at the end
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                acc[n][2 * h] *= shrink;
                acc[n][2 * h + 1] *= shrink;
            }
        }

        // the accumulators of the scores are laid out as the first operand of the second product
#pragma unroll
        for (int kk = 0; kk < kKeys / 16; ++kk) {
            const unsigned pa[4] = {
                pack(s[2 * kk][0], s[2 * kk][1]), pack(s[2 * kk][2], s[2 * kk][3]),
                pack(s[2 * kk + 1][0], s[2 * kk + 1][1]), pack(s[2 * kk + 1][2], s[2 * kk + 1][3])};
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                unsigned b0, b1;
                ldmatrix_x2_trans(b0, b1, v_tile[stage] + (kk * 16 + lane % 16) * LD + n * 8);
                mma_16816(acc[n], pa, b0, b1);
            }
        }
        __syncthreads();  // the next turn overwrites this stage
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        const float inverse = 1.0f / total[h];
        const int row = row0 + h * 8;
        if (row >= S) continue;
        __half* to = out + head + size_t(row) * D + quad * 2;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<__half2*>(to + n * 8) =
                __floats2half2_rn(acc[n][2 * h] * inverse, acc[n][2 * h + 1] * inverse);
    }
}

}  // namespace heron
