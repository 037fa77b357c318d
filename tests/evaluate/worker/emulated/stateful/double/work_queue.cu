/* evoengine
name: work_queue
precision: exact
launches:
  - {kernel: doubled, grid: [64], block: [256], args: [x, out, "N // 256"]}
*/
// Blocks that stay draw their work from a queue; the last one to find it empty sets it back.
__device__ int next, gone;

extern "C" __global__ void doubled(const int* x, int* out, int tiles) {
    __shared__ int tile;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) tile = atomicAdd(&next, 1);
        __syncthreads();
        if (tile >= tiles) break;
        const int i = tile * 256 + threadIdx.x;
        out[i] = 2 * x[i];
    }
    if (threadIdx.x == 0) {
        __threadfence();  // what this block did to the queue comes before its leaving
        if (atomicAdd(&gone, 1) == gridDim.x - 1) {
            next = 0;
            gone = 0;
        }
    }
}
