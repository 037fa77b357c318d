/* evoengine
name: grouped_attention_flash
precision: fp16
summary: 64 queries a block by mma.sync, tiles of 64 keys and values by asynchronous copies into two buffers, the softmax as it goes; the longest rows first
launches:
  - kernel: attend
    grid: [S // 64, HQ]
    block: [128]
    args: [q, k, v, out, S]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ int place(int row, int chunk) { return row * 64 + ((chunk ^ (row % 8)) * 8); }

// 64 rows of 64 halves, from global to shared memory.
__device__ __forceinline__ void copy_tile(__half* to, const __half* from, int t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = i * 16 + t / 8, chunk = t % 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(to + place(row, chunk))), "l"(from + row * 64 + chunk * 8) : "memory");
    }
}

__device__ __forceinline__ void load4(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(p)));
}

__device__ __forceinline__ void load4_transposed(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(p)));
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned packed(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

__global__ void __launch_bounds__(128) attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S) {
    __shared__ __align__(128) __half of_q[64 * 64], of_k[2][64 * 64], of_v[2][64 * 64];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, tile = gridDim.x - 1 - blockIdx.x, head = blockIdx.y;
    const __half* keys = k + size_t(head / 4) * S * 64;
    const __half* values = v + size_t(head / 4) * S * 64;
    copy_tile(of_q, q + (size_t(head) * S + tile * 64) * 64, t);
    copy_tile(of_k[0], keys, t);
    copy_tile(of_v[0], values, t);
    asm volatile("cp.async.commit_group;" ::: "memory");
    unsigned query[4][4];
    float result[8][4] = {}, top[2] = {-1e30f, -1e30f}, sum[2] = {};
    const float scale = 0.125f * 1.44269504f;
    for (int step = 0; step <= tile; ++step) {
        const int now = step % 2;
        if (step < tile) {
            copy_tile(of_k[now ^ 1], keys + size_t(step + 1) * 64 * 64, t);
            copy_tile(of_v[now ^ 1], values + size_t(step + 1) * 64 * 64, t);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        if (step == 0) {
#pragma unroll
            for (int i = 0; i < 4; ++i) load4(query[i], of_q + place(warp * 16 + lane % 16, i * 2 + lane / 16));
        }
        float score[8][4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                unsigned b[4];
                load4(b, of_k[now] + place(j * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
                multiply(score[2 * j], query[i], b[0], b[1]);
                multiply(score[2 * j + 1], query[i], b[2], b[3]);
            }
        if (step == tile) {
#pragma unroll
            for (int j = 0; j < 8; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (j * 8 + lane % 4 * 2 + e % 2 > warp * 16 + lane / 4 + e / 2 * 8) score[j][e] = -1e30f;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float most = top[half];
#pragma unroll
            for (int j = 0; j < 8; ++j) most = fmaxf(most, fmaxf(score[j][half * 2], score[j][half * 2 + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            const float factor = exp2f((top[half] - most) * scale);
            top[half] = most;
            float part = 0.0f;
#pragma unroll
            for (int j = 0; j < 8; ++j)
#pragma unroll
                for (int e = half * 2; e < half * 2 + 2; ++e) {
                    score[j][e] = exp2f((score[j][e] - most) * scale);
                    part += score[j][e];
                    result[j][e] *= factor;
                }
            sum[half] = sum[half] * factor + part;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned a[4] = {packed(score[2 * i][0], score[2 * i][1]), packed(score[2 * i][2], score[2 * i][3]),
                                   packed(score[2 * i + 1][0], score[2 * i + 1][1]), packed(score[2 * i + 1][2], score[2 * i + 1][3])};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                unsigned b[4];
                load4_transposed(b, of_v[now] + place(i * 16 + lane % 16, j * 2 + lane / 16));
                multiply(result[2 * j], a, b[0], b[1]);
                multiply(result[2 * j + 1], a, b[2], b[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
        sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
        const float inverse = 1.0f / sum[half];
        __half* row = out + (size_t(head) * S + tile * 64 + warp * 16 + lane / 4 + half * 8) * 64;
#pragma unroll
        for (int j = 0; j < 8; ++j)
            *reinterpret_cast<__half2*>(row + j * 8 + lane % 4 * 2) = __floats2half2_rn(result[j][half * 2] * inverse, result[j][half * 2 + 1] * inverse);
    }
}
