// Every thread adds to the same few addresses, once through shared memory first.
extern "C" __global__ void reduce_atomics(const float* x, const int* k, float* sum, int* integers, double* wide, int n) {
    __shared__ float block_sum;
    __shared__ int block_max;
    if (threadIdx.x == 0) {
        block_sum = 0.0f;
        block_max = -2147483647 - 1;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&block_sum, x[i]);
        atomicMax(&block_max, k[i]);
        atomicAdd(&integers[0], k[i]);
        atomicMin(&integers[1], k[i]);
        atomicXor(&integers[3], k[i]);
        atomicAdd(wide, (double)x[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(sum, block_sum);
        atomicMax(&integers[2], block_max);
    }
}
