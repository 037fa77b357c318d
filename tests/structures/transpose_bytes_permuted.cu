/* evoengine
name: transpose_bytes_permuted
precision: exact
summary: tiles of 64 x 64 bytes; a thread turns 4 x 4 of them by byte permutations, words cross in shared memory
launches:
  - kernel: transpose
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [16, 16]
    args: [x, out, M, N]
*/
__global__ void __launch_bounds__(256)
transpose(const unsigned char* __restrict__ x, unsigned char* __restrict__ out, int M, int N) {
    __shared__ unsigned tile[64][17];   // [column][four rows]
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row0 = blockIdx.y * 64 + ty * 4, column0 = blockIdx.x * 64 + tx * 4;
    unsigned r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        r[i] = row0 + i < M && column0 < N ? *reinterpret_cast<const unsigned*>(x + size_t(row0 + i) * N + column0) : 0;
    const unsigned low01 = __byte_perm(r[0], r[1], 0x5140), high01 = __byte_perm(r[0], r[1], 0x7362);
    const unsigned low23 = __byte_perm(r[2], r[3], 0x5140), high23 = __byte_perm(r[2], r[3], 0x7362);
    tile[tx * 4][ty] = __byte_perm(low01, low23, 0x5410);
    tile[tx * 4 + 1][ty] = __byte_perm(low01, low23, 0x7632);
    tile[tx * 4 + 2][ty] = __byte_perm(high01, high23, 0x5410);
    tile[tx * 4 + 3][ty] = __byte_perm(high01, high23, 0x7632);
    __syncthreads();
    const int to_row = blockIdx.x * 64 + ty * 4, to_column = blockIdx.y * 64 + tx * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (to_row + i < N && to_column < M) *reinterpret_cast<unsigned*>(out + size_t(to_row + i) * M + to_column) = tile[ty * 4 + i][tx];
}
