// printf with every kind of argument, from some lanes only.
#include <stdio.h>

__global__ void print_lines(const float* x, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (i % 20 == 3) printf("i=%d x=%.3f hex=%08x c=%c s=%s%%\n", i, x[i], i * 0x01010101u, 'a' + i % 26, i & 1 ? "odd" : "even");
        if (i == 5) printf("wide %lld %llu %5d|%-5d|%e\n", -5000000000ll, 18446744073709551615ull, 42, 42, (double)x[i] * 1e10);
        out[i] = i;
    }
    if (i == 0) printf("no arguments\n");
}
