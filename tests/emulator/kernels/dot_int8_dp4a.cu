// Dot products of bytes, four at a time; signed, and unsigned with an accumulator.
extern "C" __global__ void dot_int8_dp4a(const int* a, const int* b, int* out, const unsigned int* ua, const unsigned int* ub,
                                         unsigned int* uout, int words) {
    const int row = blockIdx.x;
    int acc = 0;
    unsigned int uacc = 7u;
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        acc = __dp4a(a[row * words + i], b[i], acc);
        uacc = __dp4a(ua[row * words + i], ub[i], uacc);
    }
    for (int d = 16; d > 0; d >>= 1) {
        acc += __shfl_down_sync(0xffffffff, acc, d);
        uacc += __shfl_down_sync(0xffffffff, uacc, d);
    }
    if (threadIdx.x == 0) {
        out[row] = acc;
        uout[row] = uacc;
    }
}
