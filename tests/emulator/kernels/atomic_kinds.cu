// Every kind of atomic: and, or, xor, min, max, inc, dec, exch, cas in a loop, 64 bits, and their results.
__device__ float atomic_max_float(float* address, float value) {
    int* as_int = (int*)address;
    int old = *as_int, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_int, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}

extern "C" __global__ void atomic_kinds(const unsigned int* x, unsigned int* cells, unsigned long long* wide, float* largest,
                                        unsigned char* taken, int n) {
    __shared__ unsigned int places;
    if (threadIdx.x == 0) places = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int v = x[i];
        atomicAnd(&cells[0], v | 0xff00u);
        atomicOr(&cells[1], v & 0x0ff0u);
        atomicXor(&cells[2], v);
        atomicMin(&cells[3], v);
        atomicMax(&cells[4], v);
        unsigned int slot = atomicInc(&cells[5], 9999u);
        taken[slot] = 1;
        atomicDec(&cells[6], 1000u);
        atomicSub(&cells[7], v);
        if (i == 17) atomicExch(&cells[8], v);
        atomicAdd(&wide[0], (unsigned long long)v << 20);
        atomicMax(&wide[1], (unsigned long long)v * v);
        atomicCAS(&wide[2], 0ull, 12345ull);
        atomic_max_float(largest, (float)v * 0.5f);
        atomicAdd(&places, 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&cells[9], places);
}
