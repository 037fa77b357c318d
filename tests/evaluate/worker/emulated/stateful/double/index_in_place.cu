/* evoengine
name: index_in_place
precision: exact
scratch: {idx: {dtype: int64, shape: [N]}}
launches:
  - {kernel: begin, grid: ["N // 256"], block: [256], args: [idx]}
  - {kernel: spread, grid: ["N // 256"], block: [256], args: [idx]}
  - {kernel: use, grid: ["N // 256"], block: [256], args: [x, idx, out]}
*/
// The second launch changes indices in place; applied twice they lead far beyond the buffer.
extern "C" __global__ void begin(long long* idx) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    idx[i] = i;
}

extern "C" __global__ void spread(long long* idx) { idx[blockIdx.x * 256 + threadIdx.x] *= 1 << 20; }

extern "C" __global__ void use(const int* x, const long long* idx, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = 2 * x[idx[i] >> 20];
}
