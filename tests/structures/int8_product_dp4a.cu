/* evoengine
name: int8_product_dp4a
precision: exact
summary: tiles of 64 x 64 of 8-bit integers in shared memory, four by four at a time with __dp4a; a thread computes 4 x 4
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [16, 16]
    args: [a, b, out, M, N, K]
*/
__global__ void __launch_bounds__(256)
multiply(const signed char* __restrict__ a, const signed char* __restrict__ b, int* __restrict__ out, int M, int N, int K) {
    __shared__ int left[16][65], right[16][65];   // [four numbers of k][row]
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    int sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 64) {
        const int row = t / 4, k = k0 + t % 4 * 16;
        const int4 zero = make_int4(0, 0, 0, 0);
        const int4 of_a = row0 + row < M && k < K ? *reinterpret_cast<const int4*>(a + size_t(row0 + row) * K + k) : zero;
        const int4 of_b = column0 + row < N && k < K ? *reinterpret_cast<const int4*>(b + size_t(column0 + row) * K + k) : zero;
        const int at = t % 4 * 4;
        left[at][row] = of_a.x, left[at + 1][row] = of_a.y, left[at + 2][row] = of_a.z, left[at + 3][row] = of_a.w;
        right[at][row] = of_b.x, right[at + 1][row] = of_b.y, right[at + 2][row] = of_b.z, right[at + 3][row] = of_b.w;
        __syncthreads();
#pragma unroll
        for (int four = 0; four < 16; ++four)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = __dp4a(left[four][ty + i * 16], right[four][tx + j * 16], sum[i][j]);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + i * 16, column = column0 + tx + j * 16;
            if (row < M && column < N) out[size_t(row) * N + column] = sum[i][j];
        }
}
