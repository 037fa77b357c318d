#include <cuda_fp16.h>

// Rows of a table by number, 16 bytes a thread; a number out of range gives zeros. 64-bit indices, as PyTorch has them.
__global__ void embedding_gather(const uint4* table, const long long* indices, uint4* out, int count, int pieces, long long rows) {
    const int at = blockIdx.x * blockDim.y + threadIdx.y;
    if (at >= count) return;
    const long long row = indices[at];
    const bool known = row >= 0 && row < rows;
    for (int i = threadIdx.x; i < pieces; i += blockDim.x) out[at * pieces + i] = known ? table[row * pieces + i] : make_uint4(0, 0, 0, 0);
}
