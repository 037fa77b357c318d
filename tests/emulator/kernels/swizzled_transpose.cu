constexpr int TILE = 32;

// A transpose without padding: the column of a word is exchanged by its row, so that rows and columns both touch all banks.
__global__ void swizzled_transpose(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    const int x = blockIdx.x * TILE + threadIdx.x;
    for (int j = threadIdx.y; j < TILE; j += blockDim.y) {
        const int y = blockIdx.y * TILE + j;
        if (x < columns && y < rows) tile[j][threadIdx.x ^ j] = in[y * columns + x];
    }
    __syncthreads();
    const int to_x = blockIdx.y * TILE + threadIdx.x;
    for (int j = threadIdx.y; j < TILE; j += blockDim.y) {
        const int to_y = blockIdx.x * TILE + j;
        if (to_x < rows && to_y < columns) out[to_y * rows + to_x] = tile[threadIdx.x][j ^ threadIdx.x];
    }
}
