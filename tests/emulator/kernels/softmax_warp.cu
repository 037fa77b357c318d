// Softmax with one warp a row; each lane keeps its part of the row in registers.
template <int COLS_PER_LANE>
__global__ void softmax_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const int lane = threadIdx.x;
    float v[COLS_PER_LANE];
    float top = -INFINITY;
#pragma unroll
    for (int k = 0; k < COLS_PER_LANE; ++k) {
        int col = k * 32 + lane;
        v[k] = col < cols ? x[row * cols + col] : -INFINITY;
        top = fmaxf(top, v[k]);
    }
#pragma unroll
    for (int m = 16; m > 0; m /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, m, 32));

    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < COLS_PER_LANE; ++k) {
        v[k] = expf(v[k] - top);
        sum += v[k];
    }
#pragma unroll
    for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m, 32);

#pragma unroll
    for (int k = 0; k < COLS_PER_LANE; ++k) {
        int col = k * 32 + lane;
        if (col < cols) y[row * cols + col] = v[k] / sum;
    }
}
