/* evoengine
name: walks_thread_each
precision: exact
summary: a thread a walk; each step waits for the load of the one before
launches:
  - kernel: walk
    grid: ["ceil_div(T, 128)"]
    block: [128]
    args: [after, begins, out, T, STEPS]
*/
__global__ void __launch_bounds__(128) walk(const int* __restrict__ after, const int* __restrict__ begins, int* __restrict__ out, int T, int steps) {
    const int own = blockIdx.x * 128 + threadIdx.x;
    if (own >= T) return;
    int place = begins[own];
    for (int i = 0; i < steps; ++i) place = after[place];
    out[own] = place;
}
