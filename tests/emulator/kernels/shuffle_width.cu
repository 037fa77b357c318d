// Shuffles in segments of 8 and 16 lanes, all four kinds, with values of 32 and 64 bits and lanes out of range.
template <typename T>
__global__ void shuffle_width(const T* in, T* out, const int* source, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T v = i < n ? in[i] : T(0);
    int s = i < n ? source[i] : 0;
    T r[8];
    r[0] = __shfl_sync(0xffffffff, v, s);
    r[1] = __shfl_sync(0xffffffff, v, s, 8);
    r[2] = __shfl_up_sync(0xffffffff, v, 3, 8);
    r[3] = __shfl_down_sync(0xffffffff, v, 5, 16);
    r[4] = __shfl_xor_sync(0xffffffff, v, 9, 16);
    r[5] = __shfl_xor_sync(0xffffffff, v, 12, 8);
    r[6] = __shfl_down_sync(0xffffffff, v, 1, 2);
    r[7] = __shfl_up_sync(0xffffffff, v, 1);
    if (i < n)
        for (int k = 0; k < 8; ++k) out[k * n + i] = r[k];
}
