/* evoengine
name: factor_counted_up
precision: exact
launches:
  - {kernel: up, grid: [1], block: [1], args: []}
  - {kernel: scale, grid: ["N // 256"], block: [256], args: [x, out]}
  - {kernel: down, grid: [1], block: [1], args: []}
*/
// A launch of one block counts a variable up from its initial value, by way of a pointer to it; another counts it down.
__constant__ int one = 1;
__device__ int factor = 1;
__device__ int* place = &factor;

extern "C" __global__ void up() { *place += one; }

extern "C" __global__ void scale(const int* x, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = factor * x[i];
}

extern "C" __global__ void down() { *place -= one; }
