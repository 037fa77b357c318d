/* evoengine
name: embedding_bag_indices_in_shared
precision: fp32
summary: a block a bag copies indices to shared memory, its warps add every eighth row, and a tree adds the warps
tunables:
  CHUNK: [256, 1024]
launches:
  - kernel: embedding_bag
    grid: [BAGS]
    block: [32, 8]
    shared: 4 * CHUNK
    args: [table, indices, offsets, out, D]
*/

__global__ void __launch_bounds__(256)
embedding_bag(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float* __restrict__ out, int D) {
    extern __shared__ int chunk[];
    __shared__ float4 sums[8][32];
    const int begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1], thread = threadIdx.y * 32 + threadIdx.x;
    for (int column = threadIdx.x * 4; column - (int)threadIdx.x * 4 < D; column += 128) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int from = begin; from < end; from += CHUNK) {
            const int count = min(CHUNK, end - from);
            __syncthreads();
            for (int i = thread; i < count; i += 256) chunk[i] = indices[from + i];
            __syncthreads();
            if (column < D)
                for (int i = threadIdx.y; i < count; i += 8) {
                    const float4 row = *reinterpret_cast<const float4*>(&table[(long long)chunk[i] * D + column]);
                    sum.x += row.x, sum.y += row.y, sum.z += row.z, sum.w += row.w;
                }
        }
        sums[threadIdx.y][threadIdx.x] = sum;
        for (int half = 4; half; half /= 2) {
            __syncthreads();
            if (threadIdx.y < half) {
                float4& a = sums[threadIdx.y][threadIdx.x];
                const float4 b = sums[threadIdx.y + half][threadIdx.x];
                a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w;
            }
        }
        if (threadIdx.y == 0 && column < D) *reinterpret_cast<float4*>(&out[(long long)blockIdx.x * D + column]) = sums[0][threadIdx.x];
        __syncthreads();
    }
}
