/* evoengine
name: counters_in_scratch
precision: exact
scratch: {book: {dtype: int32, shape: [2]}}
launches:
  - {kernel: clear, grid: [1], block: [32], args: [book]}
  - {kernel: gather, grid: ["N // 256"], block: [256], args: [x, book]}
  - {kernel: tell, grid: ["N // 256"], block: [32], args: [book, out]}
*/
// A sum and a ticket in scratch that three launches share: whoever of the third draws the last ticket writes the sum.
extern "C" __global__ void clear(int* book) {
    if (threadIdx.x < 2) book[threadIdx.x] = 0;
}

extern "C" __global__ void gather(const int* x, int* book) {
    const int mine = __reduce_add_sync(~0u, x[blockIdx.x * 256 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) atomicAdd(&book[0], mine);
}

extern "C" __global__ void tell(int* book, int* out) {
    if (threadIdx.x == 0 && atomicAdd(&book[1], 1) == gridDim.x - 1) out[0] = book[0];
}
