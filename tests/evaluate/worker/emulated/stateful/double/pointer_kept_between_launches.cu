/* evoengine
name: pointer_kept_between_launches
precision: exact
scratch: {step: {dtype: int32, shape: [N]}}
launches:
  - {kernel: keep, grid: ["N // 256"], block: [256], args: [x, step]}
  - {kernel: again, grid: ["N // 256"], block: [256], args: []}
  - {kernel: tell, grid: ["N // 256"], block: [256], args: [step, out]}
*/
// The second launch is given no buffer: it changes the one whose address the first left in a variable.
__device__ int* kept;

extern "C" __global__ void keep(const int* x, int* step) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i == 0) kept = step;
    step[i] = x[i];
}

extern "C" __global__ void again() { kept[blockIdx.x * 256 + threadIdx.x] *= 2; }

extern "C" __global__ void tell(const int* step, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = step[i];
}
