/* evoengine
name: product_split_sums
precision: fp32
summary: tiles of 64 x 64 in single precision; the sum over k is split among blocks, which add their parts with atomics of floats
tunables:
  LENGTH: [512, 1024]
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: add_parts
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", "ceil_div(K, LENGTH)"]
    block: [16, 16]
    args: [a, b, sums, M, N, K]
  - kernel: copy
    grid: ["ceil_div(M * N, 256)"]
    block: [256]
    args: [sums, out, M * N]
*/
__global__ void __launch_bounds__(256)
add_parts(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ sums, int M, int N, int K) {
    __shared__ float left[16][65], right[16][64];
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const int k1 = min(int(blockIdx.z + 1) * LENGTH, K);
    float part[4][4] = {};
    for (int k0 = blockIdx.z * LENGTH; k0 < k1; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = ty + i * 16, k = k0 + tx;
            left[tx][row] = row0 + row < M && k < k1 ? a[size_t(row0 + row) * K + k] : 0.0f;
            const int of_b = k0 + t / 64 + i * 4, column = column0 + t % 64;
            right[t / 64 + i * 4][t % 64] = of_b < k1 && column < N ? b[size_t(of_b) * N + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) part[i][j] += left[k][ty + i * 16] * right[k][tx + j * 16];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + i * 16, column = column0 + tx + j * 16;
            if (row < M && column < N) atomicAdd(sums + size_t(row) * N + column, part[i][j]);
        }
}

__global__ void __launch_bounds__(256) copy(const float* __restrict__ sums, float* __restrict__ out, int count) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < count) out[at] = sums[at];
}
