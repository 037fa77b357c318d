/* evoengine
name: table_of_pointers
precision: exact
launches:
  - {kernel: gather, grid: ["N // 256"], block: [256], args: [x]}
  - {kernel: tell, grid: [1], block: [32], args: [out]}
*/
// Variables that hold addresses of other variables; the second launch swaps two of them, and back.
__device__ int even, odd;
__device__ int* places[2] = {&even, &odd};

extern "C" __global__ void gather(const int* x) {
    const int mine = __reduce_add_sync(~0u, x[blockIdx.x * 256 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) atomicAdd(places[blockIdx.x % 2], mine);
}

extern "C" __global__ void tell(int* out) {
    if (threadIdx.x) return;
    out[0] = *places[0] + *places[1];
    *places[0] = *places[1] = 0;
    int* first = places[0];
    places[0] = places[1];
    places[1] = first;
}
