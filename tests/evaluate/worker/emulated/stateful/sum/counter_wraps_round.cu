/* evoengine
name: counter_wraps_round
precision: exact
scratch: {partial: {dtype: int32, shape: ["N // 256"]}}
launches:
  - {kernel: sum, grid: ["N // 256"], block: [256], args: [x, partial, out]}
*/
// As CUDA's sample threadFenceReduction counts: atomicInc is at 0 again after the last block. The counter belongs to the function.
extern "C" __global__ void sum(const int* x, int* partial, int* out) {
    static __device__ unsigned arrived;
    const int mine = __reduce_add_sync(~0u, x[blockIdx.x * 256 + threadIdx.x]);
    __shared__ int warps[8];
    __shared__ bool is_last;
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        int all = 0;
        for (int w = 0; w < 8; ++w) all += warps[w];
        partial[blockIdx.x] = all;
        __threadfence();
        is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || threadIdx.x) return;
    __threadfence();
    int total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += partial[b];
    out[0] = total;
}
