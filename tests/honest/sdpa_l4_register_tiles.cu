/* evoengine
name: sdpa_l4_register_tiles
precision: fp16
summary: fp32 units only - 4 x 4 scores and 4 x D/16 outputs in the registers of each of 256 threads, tiles transposed in shared memory
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 64)", "B * H"]
    block: [256]
    shared: "2 * (64 + 64) * (D + 8) + 4 * 64 * 68"
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

// Thread (ty, tx) of 16 x 16: queries 4 ty .. 4 ty + 3, keys tx + 16 i, elements tx + 16 i of the output.
template <int D, bool CAUSAL>
__global__ void __launch_bounds__(256)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    extern __shared__ __align__(16) unsigned char raw[];
    __half (*tq)[D + 8] = reinterpret_cast<__half (*)[D + 8]>(raw);
    __half (*tkv)[D + 8] = tq + 64;                                   // K, then V of the same keys
    float (*weights)[68] = reinterpret_cast<float (*)[68]>(tkv + 64);
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row0 = blockIdx.x * 64;
    const size_t head = size_t(blockIdx.y) * S * D;
    auto load = [&](__half (*tile)[D + 8], const __half* from, int first) {
        for (int i = threadIdx.x; i < 64 * D / 8; i += 256) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            const uint4 zero = {0, 0, 0, 0};
            *reinterpret_cast<uint4*>(&tile[r][c]) = first + r < S ? __ldg(reinterpret_cast<const uint4*>(from + head + size_t(first + r) * D + c)) : zero;
        }
    };
    load(tq, q, row0);
    float acc[4][D / 16] = {}, top[4], total[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) top[i] = -INFINITY;
    const int end = CAUSAL ? min(S, row0 + 64) : S;
    for (int j0 = 0; j0 < end; j0 += 64) {
        __syncthreads();
        load(tkv, k, j0);
        __syncthreads();
        float s[4][4] = {};
#pragma unroll 4
        for (int d = 0; d < D; d += 2) {
            float2 x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                x[i] = __half22float2(*reinterpret_cast<const __half2*>(&tq[ty * 4 + i][d]));
                y[i] = __half22float2(*reinterpret_cast<const __half2*>(&tkv[tx + 16 * i][d]));
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) s[i][j] += x[i].x * y[j].x + x[i].y * y[j].y;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float next = top[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = j0 + tx + 16 * j;
                s[i][j] = key < S && (!CAUSAL || key <= row0 + ty * 4 + i) ? s[i][j] * scale : -INFINITY;
                next = fmaxf(next, s[i][j]);
            }
#pragma unroll
            for (int o = 8; o; o /= 2) next = fmaxf(next, __shfl_xor_sync(~0u, next, o, 16));
            const float base = next == -INFINITY ? 0.0f : next, keep = __expf(top[i] - base);
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float p = __expf(s[i][j] - base);
                weights[ty * 4 + i][tx + 16 * j] = p;
                sum += p;
            }
#pragma unroll
            for (int o = 8; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o, 16);
            total[i] = total[i] * keep + sum;
            top[i] = next;
#pragma unroll
            for (int d = 0; d < D / 16; ++d) acc[i][d] *= keep;
        }
        __syncthreads();   // all scores are computed: V takes the place of K
        load(tkv, v, j0);
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 64; ++j) {
            float y[D / 16];
#pragma unroll
            for (int d = 0; d < D / 16; ++d) y[d] = __half2float(tkv[j][tx + 16 * d]);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float p = weights[ty * 4 + i][j];
#pragma unroll
                for (int d = 0; d < D / 16; ++d) acc[i][d] = fmaf(p, y[d], acc[i][d]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (row0 + ty * 4 + i < S)
#pragma unroll
            for (int d = 0; d < D / 16; ++d) out[head + size_t(row0 + ty * 4 + i) * D + tx + 16 * d] = __float2half(acc[i][d] / total[i]);
}
