/* evoengine
name: matmul_half_pairs
precision: fp16
summary: two products at a time are added in half precision, the sums of pairs in single precision
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 64)", M]
    block: [64]
    args: [a, b, out, N, K]
*/
#include <cuda_fp16.h>

__global__ void matmul(const half* a, const half* b, half* out, int N, int K) {
    const int m = blockIdx.y, n = blockIdx.x * 64 + threadIdx.x;
    if (n >= N) return;
    const half* row = a + size_t(m) * K;
    float sum = 0.0f;
    int k = 0;
    for (; k + 1 < K; k += 2) {
        const half first = __hmul(row[k], b[size_t(k) * N + n]);
        sum += __half2float(__hfma(row[k + 1], b[size_t(k + 1) * N + n], first));
    }
    if (k < K) sum += __half2float(row[k]) * __half2float(b[size_t(k) * N + n]);
    out[size_t(m) * N + n] = __float2half(sum);
}
