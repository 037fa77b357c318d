/* evoengine
name: backward_half_rows
precision: fp16
summary: normalised rows kept in half precision between two launches, of which the second adds columns from the last row to the first
scratch:
  normals: {dtype: float16, shape: [N, C]}
launches:
  - kernel: backward_row
    grid: [N]
    block: [32]
    args: [x, dy, weight, dx, normals, C, eps]
  - kernel: backward_columns
    grid: ["ceil_div(C, 64)"]
    block: [64]
    args: [dy, normals, dweight, dbias, N, C]
*/
#include <cuda_fp16.h>

__device__ float over_lanes(float value) {
    for (int d = 1; d < 32; d <<= 1) value += __shfl_xor_sync(~0u, value, d);
    return value;
}

__global__ void backward_row(const float* x, const float* dy, const float* weight, float* dx, half* normals, int C, float eps) {
    const size_t at = (size_t)blockIdx.x * C;
    float mean = 0.0f, spread = 0.0f;
    for (int c = threadIdx.x; c < C; c += 32) mean += x[at + c];
    mean = over_lanes(mean) / C;
    for (int c = threadIdx.x; c < C; c += 32) spread += (x[at + c] - mean) * (x[at + c] - mean);
    const float inverse = rsqrtf(over_lanes(spread) / C + eps);
    float plain = 0.0f, along = 0.0f;
    for (int c = threadIdx.x; c < C; c += 32) {
        const half normal = __float2half((x[at + c] - mean) * inverse), wanted = __float2half(dy[at + c] * weight[c]);
        normals[at + c] = normal;
        plain += __half2float(wanted);
        along += __half2float(wanted) * __half2float(normal);
    }
    plain = over_lanes(plain) / C;
    along = over_lanes(along) / C;
    for (int c = threadIdx.x; c < C; c += 32)
        dx[at + c] = (dy[at + c] * weight[c] - plain - __half2float(normals[at + c]) * along) * inverse;
}

__global__ void backward_columns(const float* dy, const half* normals, float* dweight, float* dbias, int N, int C) {
    const int c = blockIdx.x * 64 + threadIdx.x;
    if (c >= C) return;
    float w = 0.0f, b = 0.0f;
    for (int row = N - 1; row >= 0; --row) {
        w += __half2float(__float2half(dy[(size_t)row * C + c])) * __half2float(normals[(size_t)row * C + c]);
        b += dy[(size_t)row * C + c];
    }
    dweight[c] = w;
    dbias[c] = b;
}
