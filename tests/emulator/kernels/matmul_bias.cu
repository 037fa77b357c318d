#include <cuda_fp16.h>

// C = relu(A * W^T + bias), as a linear layer stores its weights; two columns a thread, the last one alone when N is odd.
__global__ void matmul_bias(const __half* A, const __half* W, const __half* bias, __half* C, int M, int N, int K) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= M || col >= N) return;
    const bool two = col + 1 < N;
    float first = 0.0f, second = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = __half2float(A[row * K + k]);
        first += a * __half2float(W[col * K + k]);
        if (two) second += a * __half2float(W[(col + 1) * K + k]);
    }
    C[row * N + col] = __float2half_rn(fmaxf(first + __half2float(bias[col]), 0.0f));
    if (two) C[row * N + col + 1] = __float2half_rn(fmaxf(second + __half2float(bias[col + 1]), 0.0f));
}
