/* evoengine
name: rms_norm_large_table
precision: fp32
summary: 32 KiB of initialised constant memory, double-precision mathematics of the library, votes, a trap that is not reached
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    args: [x, weight, out, C, eps]
*/
// powers[i] is 2 to the i for the first entries; the rest of the table is zero.
__constant__ double powers[4096] = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0};

__global__ void rms_norm(const float* x, const float* weight, float* out, int C, float eps) {
    __shared__ double sums[128];
    const float* row = x + (size_t)blockIdx.x * C;
    double s = 0.0;
    for (int i = threadIdx.x; i < C; i += 128) s += pow(fabs((double)row[i]), powers[1]);
    sums[threadIdx.x] = s;
    if (__syncthreads_count(s >= 0.0) != 128 && __syncthreads_and(s == s)) __trap();   // squares are not negative
    s = 0.0;
    for (int i = 0; i < 128; i++) s += sums[i];
    const double root = exp(0.5 * log(s / C + (double)eps));
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now == 0) __trap();
    for (int i = threadIdx.x; i < C; i += 128) out[(size_t)blockIdx.x * C + i] = (float)(row[i] / root * weight[i]);
}
