// Counters raised once for all lanes that happen to be together, whichever they are; only the sums are told.
__device__ int aggregated_add(int* counter) {
    unsigned int active = __activemask();
    int lane = threadIdx.x & 31;
    int leader = __ffs(active) - 1;
    int base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    return base + __popc(active & ((1u << lane) - 1));
}

extern "C" __global__ void activemask_divergence(const int* x, int* counters, int* slots, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int kind = x[i] % 3;
    if (kind == 0) {
        slots[aggregated_add(&counters[0])] = 1;
    } else if (kind == 1) {
        for (int k = 0; k < (x[i] & 3); ++k) aggregated_add(&counters[1]);
    } else {
        aggregated_add(&counters[2]);
        if (x[i] & 1) aggregated_add(&counters[3]);
    }
}
