/* evoengine
name: scatter_max_compare_and_swap
precision: fp32
summary: every thread raises its place in global memory in a loop around a compare-and-swap, unless it is as large already
launches:
  - kernel: raise
    grid: ["ceil_div(T, 256)"]
    block: [256]
    args: [x, index, out, T]
*/
__global__ void __launch_bounds__(256) raise(const float* __restrict__ x, const int* __restrict__ index, float* out, int T) {
    const int own = blockIdx.x * 256 + threadIdx.x;
    if (own >= T) return;
    const float v = x[own];
    int* place = reinterpret_cast<int*>(out + index[own]);
    int seen = *reinterpret_cast<volatile int*>(place);
    while (v > __int_as_float(seen)) {
        const int found = atomicCAS(place, seen, __float_as_int(v));
        if (found == seen) break;
        seen = found;
    }
}
