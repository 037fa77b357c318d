/* evoengine
name: layernorm_double_sums
precision: fp32
summary: blocks stride over the rows; both moments in one pass, in double precision
tunables:
  THREADS: [256, 128]
launches:
  - kernel: layernorm
    grid: ["min(N, 8 * SM_COUNT)"]
    block: [THREADS]
    args: [x, weight, bias, out, N, C, eps, {value: 1/C, dtype: float64}]
*/
#define FOR_EACH(i, n) for (int i = threadIdx.x; i < (n); i += blockDim.x)
#define WARP_ADD(v) do { for (int d = 16; d >= 1; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d); } while (0)

__global__ void layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                          float* __restrict__ out, int N, int C, float eps, double per_element) {
    __shared__ double moments[2][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int row = blockIdx.x; row < N; row += gridDim.x) {
        const float* in = x + (long long)row * C;
        double s1 = 0.0, s2 = 0.0;
        FOR_EACH(i, C) {
            const double v = in[i];
            s1 += v;
            s2 += v * v;   // 53 bits leave enough of the difference below
        }
        WARP_ADD(s1);
        WARP_ADD(s2);
        __syncthreads();
        if (lane == 0) moments[0][warp] = s1, moments[1][warp] = s2;
        __syncthreads();
        s1 = s2 = 0.0;
        for (int w = 0; w < THREADS / 32; w++) s1 += moments[0][w], s2 += moments[1][w];
        const double mean = s1 * per_element, variance = fmax(s2 * per_element - mean * mean, 0.0);
        const float rstd = (float)(1.0 / sqrt(variance + (double)eps));
        const float high = (float)mean, low = (float)(mean - (double)high);
        FOR_EACH(i, C) out[(long long)row * C + i] = ((in[i] - high) - low) * rstd * weight[i] + bias[i];
    }
}
