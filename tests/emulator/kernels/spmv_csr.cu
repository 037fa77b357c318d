// Sparse matrix times vector in CSR form, LANES lanes a row.
template <int LANES>
__global__ void spmv_csr(const int* __restrict__ row_ptr, const int* __restrict__ col_idx, const float* __restrict__ vals,
                         const float* __restrict__ x, float* __restrict__ y, int rows) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int row = t / LANES;
    int lane = t % LANES;
    float sum = 0.0f;
    if (row < rows) {
        for (int j = row_ptr[row] + lane; j < row_ptr[row + 1]; j += LANES) sum += vals[j] * x[col_idx[j]];
    }
#pragma unroll
    for (int d = LANES / 2; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffff, sum, d, LANES);
    if (row < rows && lane == 0) y[row] = sum;
}
