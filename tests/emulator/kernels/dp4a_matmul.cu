// int8 product with four multiply-adds an instruction; b is stored by columns, both padded to whole words.
__global__ void dp4a_matmul(const int* a, const int* b, int* out, int M, int N, int words) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || column >= N) return;
    int sum = 0;
    for (int k = 0; k < words; ++k) sum = __dp4a(a[row * words + k], b[column * words + k], sum);
    out[row * N + column] = sum;
}

// Unsigned codes, as an asymmetric quantisation has them.
__global__ void dp4a_unsigned(const unsigned* a, const unsigned* b, unsigned* out, int M, int N, int words) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || column >= N) return;
    unsigned sum = 0u;
    for (int k = 0; k < words; ++k) sum = __dp4a(a[row * words + k], b[column * words + k], sum);
    out[row * N + column] = sum;
}
