// The fast intrinsics, which are single instructions or nearly so.
extern "C" __global__ void math_fast(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i];
    float positive = fabsf(a) + 0.01f;
    float s, c;
    __sincosf(b, &s, &c);
    out[0 * n + i] = __sinf(b);
    out[1 * n + i] = __cosf(b);
    out[2 * n + i] = s * c;
    out[3 * n + i] = __expf(a);
    out[4 * n + i] = __exp10f(b);
    out[5 * n + i] = __logf(positive);
    out[6 * n + i] = __log2f(positive);
    out[7 * n + i] = __powf(positive, b);
    out[8 * n + i] = __fdividef(a, positive);
    out[9 * n + i] = __frcp_rn(positive);
    out[10 * n + i] = __fsqrt_rn(positive);
    out[11 * n + i] = __frsqrt_rn(positive);
    out[12 * n + i] = __fdiv_rn(b, positive);
    out[13 * n + i] = __fmaf_rn(a, b, positive);
    out[14 * n + i] = __fsub_rn(__fmul_rz(a, b), __fadd_ru(a, b));
    out[15 * n + i] = __saturatef(a);
}
