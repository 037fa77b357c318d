/* evoengine
name: too_long_to_follow
precision: exact
launches:
  - {kernel: gather, grid: ["N // 256"], block: [256], args: [x, out]}
  - {kernel: tell, grid: [1], block: [32], args: [out]}
*/
// Only a sample of the first launch can be followed, and all of its blocks must have run before the second.
__device__ int total, blocks;

extern "C" __global__ void gather(const volatile int* x, int* out) {
    int mine = 0;
    for (int round = 0; round < 400; ++round) mine += x[blockIdx.x * 256 + threadIdx.x];
    mine = __reduce_add_sync(~0u, mine / 400);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
    if (threadIdx.x == 0 && atomicAdd(&blocks, 1) >= gridDim.x) __trap();
    if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = 0;
}

extern "C" __global__ void tell(int* out) {
    if (threadIdx.x) return;
    if (blocks != 256) __trap();
    out[0] += total;
    total = blocks = 0;
}
