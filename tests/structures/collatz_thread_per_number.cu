/* evoengine
name: collatz_thread_per_number
precision: exact
summary: a thread a number; the lanes of a warp go on until the last of them is done
launches:
  - kernel: steps
    grid: ["ceil_div(T, 256)"]
    block: [256]
    args: [numbers, out, T]
*/
__global__ void __launch_bounds__(256) steps(const int* __restrict__ numbers, int* __restrict__ out, int T) {
    const int own = blockIdx.x * 256 + threadIdx.x;
    if (own >= T) return;
    unsigned long long n = numbers[own];
    int count = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        ++count;
    }
    out[own] = count;
}
