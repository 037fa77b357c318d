/* evoengine
name: phase_of_one_kernel
precision: exact
launches:
  - {kernel: step, grid: ["N // 256"], block: [256], args: [x, out]}
  - {kernel: step, grid: ["N // 256"], block: [256], args: [x, out]}
*/
// One kernel, launched twice, does another thing each time: its last block turns the phase over.
__device__ int phase;
__device__ unsigned arrived;

extern "C" __global__ void step(const int* x, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (*(volatile int*)&phase == 0) out[i] = x[i];
    else out[i] += x[i];
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence();
    if (atomicAdd(&arrived, 1u) == gridDim.x - 1) {
        arrived = 0;
        atomicXor(&phase, 1);
    }
}
