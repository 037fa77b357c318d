#include <cuda_fp16.h>

// Two halves a thread on the way in; the last column of an odd row has no partner. A batch in z.
__global__ void batched_transpose_half(const __half* in, __half* out, int rows, int columns) {
    __shared__ __half tile[32][34];
    const __half* from = in + size_t(blockIdx.z) * rows * columns;
    __half* to = out + size_t(blockIdx.z) * rows * columns;
    const int row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
    for (int j = threadIdx.y; j < 32; j += blockDim.y) {
        const int r = row0 + j, c = col0 + 2 * threadIdx.x;
        if (r < rows && c + 1 < columns && columns % 2 == 0) {
            *reinterpret_cast<__half2*>(&tile[j][2 * threadIdx.x]) = *reinterpret_cast<const __half2*>(&from[r * columns + c]);
        } else if (r < rows && c < columns) {
            tile[j][2 * threadIdx.x] = from[r * columns + c];
            if (c + 1 < columns) tile[j][2 * threadIdx.x + 1] = from[r * columns + c + 1];
        }
    }
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        for (int i = threadIdx.x; i < 32; i += blockDim.x)
            if (col0 + j < columns && row0 + i < rows) to[(col0 + j) * rows + row0 + i] = tile[i][j];
}
