/* evoengine
name: lower_bounds_thread_each
precision: exact
summary: a thread a number, by halving
launches:
  - kernel: search
    grid: ["ceil_div(T, 256)"]
    block: [256]
    args: [ordered, wanted, out, V, T]
*/
__global__ void __launch_bounds__(256) search(const int* __restrict__ ordered, const int* __restrict__ wanted, int* __restrict__ out, int V, int T) {
    const int own = blockIdx.x * 256 + threadIdx.x;
    if (own >= T) return;
    const int value = wanted[own];
    int low = 0, high = V;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (ordered[middle] < value) low = middle + 1;
        else high = middle;
    }
    out[own] = low;
}
