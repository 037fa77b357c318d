// Shared memory is not zero when a block begins.
__global__ void __launch_bounds__(64) counter_not_cleared(const int* in, int* out) {
    __shared__ int count;
#ifdef FIXED
    if (threadIdx.x == 0) count = 0;
#endif
    __syncthreads();
    if (in[blockIdx.x * 64 + threadIdx.x] > 0) atomicAdd(&count, 1);    // FAULT
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}
