/* evoengine
name: counting_sort
precision: exact
scratch: {c: {dtype: int32, shape: [256]}, o: {dtype: int32, shape: [N]}}
launches:
  - {kernel: clear, grid: [1], block: [256], args: [c]}
  - {kernel: count, grid: ["N // 256"], block: [256], args: [x, c]}
  - {kernel: starts, grid: [1], block: [32], args: [c]}
  - {kernel: place, grid: ["N // 256"], block: [256], args: [x, c, o]}
  - {kernel: hand_over, grid: ["N // 256"], block: [256], args: [o, out]}
*/
// Every launch but the last changes what it reads: a second run of its blocks finds other counts.
extern "C" __global__ void clear(int* c) { c[threadIdx.x] = 0; }

extern "C" __global__ void count(const int* x, int* c) { atomicAdd(&c[x[blockIdx.x * 256 + threadIdx.x] + 128], 1); }

extern "C" __global__ void starts(int* c) {
    if (threadIdx.x) return;
    for (int v = 0, next = 0; v < 256; ++v) {
        const int here = c[v];
        c[v] = next;
        next += here;
    }
}

extern "C" __global__ void place(const int* x, int* c, int* o) {
    const int v = x[blockIdx.x * 256 + threadIdx.x];
    o[atomicAdd(&c[v + 128], 1)] = v;
}

extern "C" __global__ void hand_over(const int* o, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = o[i];
}
