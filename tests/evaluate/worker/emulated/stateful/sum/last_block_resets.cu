/* evoengine
name: last_block_resets
precision: exact
scratch: {partial: {dtype: int32, shape: ["N // 256"]}}
launches:
  - {kernel: sum, grid: ["N // 256"], block: [256], args: [x, partial, out]}
*/
// The block that comes last adds the partial sums up, and sets the counter back for the next launch.
__device__ unsigned arrived;

extern "C" __global__ void sum(const int* x, int* partial, int* out) {
    __shared__ bool is_last;
    const int mine = __reduce_add_sync(~0u, x[blockIdx.x * 256 + threadIdx.x]);
    __shared__ int warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        int all = 0;
        for (int w = 0; w < 8; ++w) all += warps[w];
        partial[blockIdx.x] = all;
        __threadfence();
        is_last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || threadIdx.x) return;
    __threadfence();
    int total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += partial[b];
    out[0] = total;
    arrived = 0;
}
