/* evoengine
name: look_back
precision: exact
scratch: {seen: {dtype: int32, shape: ["N // 256"]}}
launches:
  - {kernel: clear, grid: ["ceil_div(N // 256, 256)"], block: [256], args: [seen, "N // 256"]}
  - {kernel: chained, grid: ["N // 256"], block: [256], args: [x, seen, out]}
  - {kernel: again, grid: ["N // 256"], block: [256], args: [x, out]}
*/
// Each block waits for the one before it: a sample of the grid, in which that one is missing, never ends.
__device__ unsigned drawn;

extern "C" __global__ void clear(int* seen, int blocks) {
    const int b = blockIdx.x * 256 + threadIdx.x;
    if (b < blocks) seen[b] = 0;
    if (b == 0) drawn = 0;
}

extern "C" __global__ void chained(const int* x, int* seen, int* out) {
    __shared__ int before;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (threadIdx.x == 0) {
        const unsigned turn = atomicAdd(&drawn, 1u);
        before = 0;
        if (blockIdx.x) while ((before = atomicAdd(&seen[blockIdx.x - 1], 0)) == 0) {}
        if (turn >= gridDim.x) before = 1 << 30;  // a turn that this launch cannot have
        atomicAdd(&seen[blockIdx.x], before + 1);
    }
    __syncthreads();
    out[i] = before == blockIdx.x ? x[i] : -1;
}

extern "C" __global__ void again(const int* x, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] += x[i];
}
