/* evoengine
name: counting_sort_in_variables
precision: exact
scratch: {o: {dtype: int32, shape: [N]}}
launches:
  - {kernel: clear, grid: [1], block: [256], args: []}
  - {kernel: count, grid: ["N // 256"], block: [256], args: [x]}
  - {kernel: starts, grid: [1], block: [32], args: []}
  - {kernel: place, grid: ["N // 256"], block: [256], args: [x, o]}
  - {kernel: hand_over, grid: ["N // 256"], block: [256], args: [o, out]}
*/
// The counts are a variable: nothing but the initial value of a launch tells how far the others came.
__device__ int c[256];

extern "C" __global__ void clear() { c[threadIdx.x] = 0; }

extern "C" __global__ void count(const int* x) { atomicAdd(&c[x[blockIdx.x * 256 + threadIdx.x] + 128], 1); }

extern "C" __global__ void starts() {
    if (threadIdx.x) return;
    for (int v = 0, next = 0; v < 256; ++v) {
        const int here = c[v];
        c[v] = next;
        next += here;
    }
}

extern "C" __global__ void place(const int* x, int* o) {
    const int v = x[blockIdx.x * 256 + threadIdx.x];
    o[atomicAdd(&c[v + 128], 1)] = v;
}

extern "C" __global__ void hand_over(const int* o, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = o[i];
}
