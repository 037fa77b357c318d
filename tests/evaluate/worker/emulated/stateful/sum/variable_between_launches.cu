/* evoengine
name: variable_between_launches
precision: exact
launches:
  - {kernel: gather, grid: ["N // 256"], block: [256], args: [x]}
  - {kernel: tell, grid: [1], block: [32], args: [out]}
*/
// The first launch adds into a variable; the second hands it over and clears it.
__device__ int total;

extern "C" __global__ void gather(const int* x) {
    const int mine = __reduce_add_sync(~0u, x[blockIdx.x * 256 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
}

extern "C" __global__ void tell(int* out) {
    if (threadIdx.x == 0) out[0] = atomicExch(&total, 0);
}
