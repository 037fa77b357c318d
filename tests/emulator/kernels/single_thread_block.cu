// One thread a block does the work of a loop, with barriers and shuffles that mean nothing then.
__global__ void single_thread_block(const double* x, double* out, int n) {
    __shared__ double carry;
    carry = 0.0;
    __syncthreads();
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
        double v = x[i];
        v = __shfl_sync(1u, v, 0);
        carry = carry + v;
        __syncthreads();
    }
    if (__all_sync(1u, carry == carry)) out[blockIdx.x] = carry;
}
