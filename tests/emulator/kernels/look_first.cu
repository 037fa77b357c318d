// Reads that no fence orders, and that need none: they only decide whether an atomic operation or more work is worth it.
__device__ float largest(float* best, float x) {
    int* bits = reinterpret_cast<int*>(best);
    int seen = *bits;
    while (__int_as_float(seen) < x) {
        int before = atomicCAS(bits, seen, __float_as_int(x));
        if (before == seen) break;
        seen = before;
    }
    return x;
}

extern "C" __global__ void look_first(const float* x, int n, float sought, float* best, int* top, int* found, unsigned* done, float* out) {
    __shared__ bool last;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        largest(best, x[i]);
        if (i > *top && x[i] > 0.0f) atomicMax(top, i);
        if (*found == 0 && x[i] == sought) atomicExch(found, 1);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) out[0] = *best + 1.0f, out[1] = *top, out[2] = *found;
}
