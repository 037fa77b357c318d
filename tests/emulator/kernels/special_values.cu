// NaN, infinities, signed zeros and subnormal numbers through arithmetic, comparisons, extremes and classification.
extern "C" __global__ void special_values(const float* a, const float* b, float* out, int* classes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    float* o = out + 8 * i;
    o[0] = __fadd_rn(x, y);
    o[1] = __fmul_rn(x, y);
    o[2] = __fdiv_rn(x, y);
    o[3] = fmaf(x, y, x);
    o[4] = fmaxf(x, y);
    o[5] = fminf(x, y);
    o[6] = sqrtf(x);
    o[7] = x > y ? x : y;
    int c = 0;
    c |= (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 | (x > y) << 4 | (x >= y) << 5;
    c |= !(x < y) << 6;
    c |= (isnan(x) != 0) << 7 | (isinf(x) != 0) << 8 | (isfinite(y) != 0) << 9 | (signbit(y) != 0) << 10;
    classes[i] = c;
}
