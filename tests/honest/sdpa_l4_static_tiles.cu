/* evoengine
name: sdpa_l4_static_tiles
precision: fp16
summary: almost 48 KiB of static shared memory, all scores of a tile by WMMA, a thread a query for softmax and for its row of the output
tunables:
  UNROLL: [4, 8]
launches:
  - kernel: attention<D>
    grid: ["B * H", "ceil_div(S, 32)"]
    block: [32, 4]
    args: [q, k, v, out, S, scale, causal]
*/
#include <cuda_fp16.h>
#include <mma.h>

// 32 queries a block and 32 keys a step, each padded to 128 elements and 8 more.
template <int D>
__global__ void __launch_bounds__(128)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale, bool causal) {
    __shared__ __align__(32) __half tq[32][136], tk[32][136], tv[32][136];
    __shared__ __align__(32) float scores[32][36];
    __shared__ float outputs[32][128 + 1];
    __shared__ float keep[32], sums[32];
    const int thread = threadIdx.y * 32 + threadIdx.x, row0 = blockIdx.y * 32;
    const size_t head = size_t(blockIdx.x) * S * D;
    for (int i = thread; i < 32 * D; i += 128) {
        tq[i / D][i % D] = row0 + i / D < S ? q[head + size_t(row0) * D + i] : __half(0.0f);
        outputs[i / D][i % D] = 0.0f;
    }
    float top = -INFINITY, total = 0.0f;   // of query threadIdx.x, in the first warp
    const int end = causal ? min(S, row0 + 32) : S;
    for (int j0 = 0; j0 < end; j0 += 32) {
        for (int i = thread; i < 32 * D; i += 128) {
            tk[i / D][i % D] = j0 + i / D < S ? k[head + size_t(j0) * D + i] : __half(0.0f);
            tv[i / D][i % D] = j0 + i / D < S ? v[head + size_t(j0) * D + i] : __half(0.0f);
        }
        __syncthreads();
        {
            using namespace nvcuda::wmma;
            const int r = threadIdx.y / 2 * 16, c = threadIdx.y % 2 * 16;
            fragment<accumulator, 16, 16, 16, float> sum;
            fill_fragment(sum, 0.0f);
            for (int d = 0; d < D; d += 16) {
                fragment<matrix_a, 16, 16, 16, __half, row_major> x;
                fragment<matrix_b, 16, 16, 16, __half, col_major> y;
                load_matrix_sync(x, &tq[r][d], 136);
                load_matrix_sync(y, &tk[c][d], 136);
                mma_sync(sum, x, y, sum);
            }
            for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= scale;
            store_matrix_sync(&scores[r][c], sum, 36, mem_row_major);
        }
        __syncthreads();
        if (threadIdx.y == 0) {
            float* line = scores[threadIdx.x];
            const int row = row0 + threadIdx.x, keys = min(S - j0, causal ? row - j0 + 1 : 32);
            float next = top;
            for (int c = 0; c < 32; ++c)
                if (c < keys) next = fmaxf(next, line[c]);
            const float base = next == -INFINITY ? 0.0f : next, factor = expf(top - base);
            total *= factor;
            for (int c = 0; c < 32; ++c) {
                line[c] = c < keys ? expf(line[c] - base) : 0.0f;
                total += line[c];
            }
            top = next;
            keep[threadIdx.x] = factor;
        }
        __syncthreads();
        for (int d = threadIdx.y; d < D; d += 4) {
            float sum = outputs[threadIdx.x][d] * keep[threadIdx.x];
#pragma unroll UNROLL
            for (int c = 0; c < 32; ++c) sum += scores[threadIdx.x][c] * __half2float(tv[c][d]);
            outputs[threadIdx.x][d] = sum;
        }
        __syncthreads();
    }
    if (threadIdx.y == 0) sums[threadIdx.x] = total;
    __syncthreads();
    for (int i = thread; i < 32 * D; i += 128)
        if (row0 + i / D < S) out[head + size_t(row0) * D + i] = __float2half(outputs[i / D][i % D] / sums[i / D]);
}
