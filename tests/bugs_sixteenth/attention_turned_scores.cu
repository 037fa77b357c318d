/* evoengine
name: attention_turned_scores
precision: fp16
summary: a warp has eight queries, the columns of both products; scores and sums stay transposed in registers, weights pass through shared memory, tiles of 32 keys arrive by cp.async in two stages
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 32)", H, B]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, WARPS = 4, QUERIES = 32, KEYS = 32;

__device__ __forceinline__ unsigned word(const __half* two) {
    return *reinterpret_cast<const unsigned*>(two);
}

__device__ __forceinline__ unsigned address_of(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(from)) : "memory");
}

__device__ __forceinline__ void load_transposed(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(from)) : "memory");
}

__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies a tile of rows of D halves, zeros behind the last row.
template <int D>
__device__ __forceinline__ void copy(__half (&to)[KEYS][D + 8], const __half* __restrict__ from, int start, int S) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        const bool inside = start + r < S;
        const __half* source = inside ? from + size_t(start + r) * D + c : from;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(&to[r][c])), "l"(source), "r"(inside ? 16 : 0) : "memory");
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int S, float scale) {
    __shared__ __align__(16) __half keys[2][KEYS][D + 8], values[2][KEYS][D + 8];
    __shared__ __align__(16) __half weights[WARPS][8][KEYS + 8];   // by query
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int first = blockIdx.x * QUERIES;
    const size_t base = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * D;

    unsigned query[D / 16][2];   // the right operand: eight queries are its columns
    const int own = first + warp * 8 + group;
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
        const __half* from = q + base + size_t(own) * D + c * 16 + quad * 2;
        query[c][0] = own < S ? word(from) : 0u;
        query[c][1] = own < S ? word(from + 8) : 0u;
    }

    float sum[D / 16][4] = {};   // rows are columns of the head, columns are queries
    float top[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
    const float factor = scale * 1.44269504f;
    const int end = CAUSAL ? min(S, first + QUERIES) : S, tiles = (end + KEYS - 1) / KEYS;
    copy<D>(keys[0], k + base, 0, S);
    copy<D>(values[0], v + base, 0, S);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int t = 0; t < tiles; ++t) {
        if (t + 1 < tiles) {
            copy<D>(keys[(t + 1) % 2], k + base, (t + 1) * KEYS, S);
            copy<D>(values[(t + 1) % 2], v + base, (t + 1) * KEYS, S);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();

        float score[2][4] = {};
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int c = 0; c < D / 16; ++c) {
                unsigned key[4];
                load_matrices(key, &keys[t % 2][m * 16 + lane % 16][c * 16 + lane / 16 * 8]);
                multiply(score[m], key, query[c][0], query[c][1]);
            }
        }
        float peak[2] = {top[0], top[1]}, fade[2];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int place = t * KEYS + m * 16 + group + e / 2 * 8;
                const int row = first + warp * 8 + quad * 2 + e % 2;
                const bool seen = place < S && (!CAUSAL || place <= row);
                score[m][e] = seen ? score[m][e] * factor : -INFINITY;
                peak[e % 2] = fmaxf(peak[e % 2], score[m][e]);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int mask = 4; mask < 32; mask *= 2) peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], mask));
            fade[h] = exp2f(top[h] - peak[h]);
            top[h] = peak[h];
            total[h] *= fade[h];
        }
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float weight = exp2f(score[m][e] - top[e % 2]);
                total[e % 2] += weight;
                weights[warp][quad * 2 + e % 2][m * 16 + group + e / 2 * 8] = __float2half(weight);
            }
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < D / 16; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) sum[j][e] *= fade[e % 2];
#pragma unroll
            for (int c = 0; c < KEYS / 16; ++c) {
                unsigned value[4];
                load_transposed(value, &values[t % 2][c * 16 + lane / 16 * 8 + lane % 8][j * 16 + lane / 8 % 2 * 8]);
                const __half* pair = &weights[warp][group][c * 16 + quad * 2];
                multiply(sum[j], value, word(pair), word(pair + 8));
            }
        }
        __syncthreads();   // both tiles and the weights have been used
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int step = 16; step >= 4; step /= 2) total[h] += __shfl_xor_sync(0xffffffffu, total[h], step);
        const float inverse = 1.0f / total[h];
#pragma unroll
        for (int j = 0; j < D / 16; ++j) {
            keys[0][warp * 8 + quad * 2 + h][j * 16 + group] = __float2half(sum[j][h] * inverse);
            keys[0][warp * 8 + quad * 2 + h][j * 16 + group + 8] = __float2half(sum[j][h + 2] * inverse);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < QUERIES * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        if (first + r < S)
            *reinterpret_cast<uint4*>(out + base + size_t(first + r) * D + c) = *reinterpret_cast<const uint4*>(&keys[0][r][c]);
    }
}
