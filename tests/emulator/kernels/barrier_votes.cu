// __syncthreads_count, _and and _or, in a loop that ends by one of them.
extern "C" __global__ void barrier_votes(const int* x, int* counts, int* rounds, int* flags, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    int count = __syncthreads_count(v > 50);
    int all = __syncthreads_and(v >= 0);
    int any = __syncthreads_or(v == 77);
    int k = 0;
    while (__syncthreads_or(v > 0)) {
        if (v > 0) v -= 1 + (threadIdx.x & 7);
        ++k;
    }
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = count;
        rounds[blockIdx.x] = k;
        flags[blockIdx.x] = (all != 0) | (any != 0) << 1;
    }
}
