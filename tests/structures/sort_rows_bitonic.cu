/* evoengine
name: sort_rows_bitonic
precision: fp32
summary: a block sorts a row of 1024 in shared memory by a bitonic network, a barrier after each of its 55 steps
launches:
  - kernel: sort
    grid: [N]
    block: [512]
    args: [x, out]
*/
__global__ void __launch_bounds__(512) sort(const float* __restrict__ x, float* __restrict__ out) {
    __shared__ float row[1024];
    const int t = threadIdx.x;
    row[t] = x[blockIdx.x * 1024 + t];
    row[t + 512] = x[blockIdx.x * 1024 + t + 512];
    for (int length = 2; length <= 1024; length *= 2)
        for (int step = length / 2; step; step /= 2) {
            __syncthreads();
            const int low = 2 * t - (t & (step - 1)), high = low + step;
            const float a = row[low], b = row[high];
            if ((a > b) == ((low & length) == 0)) row[low] = b, row[high] = a;
        }
    __syncthreads();
    out[blockIdx.x * 1024 + t] = row[t];
    out[blockIdx.x * 1024 + t + 512] = row[t + 512];
}
