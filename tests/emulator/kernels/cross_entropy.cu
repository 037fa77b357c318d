#include <cuda_fp16.h>

// loss = log(sum exp(x)) - x[label]; a block a row; label -100 is ignored, as PyTorch does; the mean by atomics.
__global__ void cross_entropy(const __half* logits, const int* labels, float* losses, float* total, int* counted, int classes) {
    __shared__ float parts[4], top_of_row;
    const __half* row = logits + size_t(blockIdx.x) * classes;
    const int label = labels[blockIdx.x], warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (label == -100) {    // the whole block
        if (threadIdx.x == 0) losses[blockIdx.x] = 0.0f;
        return;
    }
    float top = -INFINITY;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) top = fmaxf(top, __half2float(row[i]));
    for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
    if (lane == 0) parts[warp] = top;
    __syncthreads();
    if (threadIdx.x == 0) top_of_row = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) sum += expf(__half2float(row[i]) - top_of_row);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        const float loss = logf(parts[0] + parts[1] + parts[2] + parts[3]) + top_of_row - __half2float(row[label]);
        losses[blockIdx.x] = loss;
        atomicAdd(total, loss);
        atomicAdd(counted, 1);
    }
}
