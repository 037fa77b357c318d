#include <cuda_fp16.h>

// Ordered and unordered comparisons differ only where one side is NaN.
__global__ void half_compare(const __half* a, const __half* b, unsigned* flags, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half x = a[i], y = b[i];
    unsigned set = 0;
    set |= __heq(x, y) << 0 | __hne(x, y) << 1 | __hlt(x, y) << 2 | __hle(x, y) << 3 | __hgt(x, y) << 4 | __hge(x, y) << 5;
    set |= __hequ(x, y) << 6 | __hneu(x, y) << 7 | __hltu(x, y) << 8 | __hleu(x, y) << 9 | __hgtu(x, y) << 10 | __hgeu(x, y) << 11;
    set |= unsigned(__hisnan(x)) << 12 | unsigned(__hisinf(x) != 0) << 13;
    set |= unsigned(x < y) << 14 | unsigned(x == y) << 15;
    const __half2 xx = __halves2half2(x, y), yy = __halves2half2(y, y);
    set |= unsigned(__hbeq2(xx, yy)) << 16 | unsigned(__hbgt2(xx, yy)) << 17;
    const __half2 ones = __hle2(xx, yy);  // 1.0 where true
    set |= unsigned(__half2float(__low2half(ones)) == 1.0f) << 18 | unsigned(__half2float(__high2half(ones)) == 1.0f) << 19;
    flags[i] = set;
}
