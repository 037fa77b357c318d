/* evoengine
name: rms_norm_overlapping_tail
precision: fp32
summary: pieces of eight elements a thread; the last piece of a row begins eight before its end and writes some elements again
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    args: [x, weight, out, C, eps]
*/
// The last piece overlaps the one before it. Both threads write the same values there, so the order does not matter.
__global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int C, float eps) {
    __shared__ float sums[128];
    const float* row = x + (size_t)blockIdx.x * C;
    float s = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128) s += row[i] * row[i];
    sums[threadIdx.x] = s;
    __syncthreads();
    for (int n = 64; n; n /= 2) {
        if (threadIdx.x < n) sums[threadIdx.x] += sums[threadIdx.x + n];
        __syncthreads();
    }
    const float scale = 1.0f / sqrtf(sums[0] / C + eps);
    for (int first = threadIdx.x * 8; first < C; first += 128 * 8) {
        const int at = max(0, min(first, C - 8));
#pragma unroll
        for (int j = 0; j < 8; ++j)
            if (at + j < C) out[(size_t)blockIdx.x * C + at + j] = row[at + j] * scale * weight[at + j];
    }
}
