/* evoengine
name: bag_teams_tree
precision: fp32
summary: a block has a bag and 64 columns; eight teams of 16 threads add every eighth row of batches of 64 staged indices, and a tree in shared memory adds the teams
launches:
  - kernel: pool
    grid: [BAGS, "ceil_div(D, 64)"]
    block: [16, 8]
    args: [table, indices, offsets, out, D]
*/
constexpr int WIDE = 16, TEAMS = 8, BATCH = 64;

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void __launch_bounds__(WIDE * TEAMS)
pool(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
     float* __restrict__ out, int D) {
    __shared__ int staged[BATCH];
    __shared__ float4 sums[TEAMS][WIDE];
    const int bag = blockIdx.x, column = (blockIdx.y * WIDE + threadIdx.x) * 4;
    const int tid = threadIdx.y * WIDE + threadIdx.x;
    const int begin = offsets[bag], end = offsets[bag + 1];

    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int start = begin; start < end; start += BATCH) {
        const int count = min(BATCH, end - start);
        __syncthreads();   // the last batch has been used
        if (tid < count) staged[tid] = indices[start + tid];
        __syncthreads();
        if (column < D) {
            int i = threadIdx.y;
            for (; i + TEAMS < count; i += 2 * TEAMS) {
                const float4 one = *reinterpret_cast<const float4*>(table + size_t(staged[i]) * D + column);
                const float4 two = *reinterpret_cast<const float4*>(table + size_t(staged[i + TEAMS]) * D + column);
                sum = sum + (one + two);
            }
            if (i < count) sum = sum + *reinterpret_cast<const float4*>(table + size_t(staged[i]) * D + column);
        }
    }

    sums[threadIdx.y][threadIdx.x] = sum;
#pragma unroll
    for (int half = TEAMS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            sums[threadIdx.y][threadIdx.x] = sums[threadIdx.y][threadIdx.x] + sums[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y == 0 && column < D) *reinterpret_cast<float4*>(out + size_t(bag) * D + column) = sums[0][threadIdx.x];
}
