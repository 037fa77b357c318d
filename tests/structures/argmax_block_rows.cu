/* evoengine
name: argmax_block_rows
precision: exact
summary: a block a row, read as vectors; number and place travel together through shuffles and shared memory
launches:
  - kernel: places
    grid: [N]
    block: [256]
    args: [x, out, C]
*/
__device__ __forceinline__ void take(float& top, int& place, float other, int of_other) {
    if (other > top || (other == top && of_other < place)) top = other, place = of_other;
}

__global__ void __launch_bounds__(256) places(const float* __restrict__ x, int* __restrict__ out, int C) {
    __shared__ float tops[8];
    __shared__ int of_tops[8];
    const int t = threadIdx.x, row = blockIdx.x;
    const float4* from = reinterpret_cast<const float4*>(x + size_t(row) * C);
    float top = -3.4e38f;
    int place = 0x7fffffff;
    for (int i = t; i < C / 4; i += 256) {
        const float4 v = from[i];
        take(top, place, v.x, 4 * i), take(top, place, v.y, 4 * i + 1);
        take(top, place, v.z, 4 * i + 2), take(top, place, v.w, 4 * i + 3);
    }
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const float other = __shfl_xor_sync(~0u, top, step);
        const int of_other = __shfl_xor_sync(~0u, place, step);
        take(top, place, other, of_other);
    }
    if (t % 32 == 0) tops[t / 32] = top, of_tops[t / 32] = place;
    __syncthreads();
    if (t == 0) {
        for (int i = 1; i < 8; ++i) take(top, place, tops[i], of_tops[i]);
        out[row] = place;
    }
}
