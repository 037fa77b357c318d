// The functions of math.h as programs use them, one row of results a function.
extern "C" __global__ void math_functions(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i];
    float positive = fabsf(a) + 0.001f;
    int k = 0;
#define PUT(value) out[k++ * n + i] = (value)
    PUT(sinf(a));
    PUT(cosf(a));
    PUT(tanf(b));
    PUT(tanhf(a));
    PUT(expf(a));
    PUT(exp2f(a));
    PUT(expm1f(b));
    PUT(logf(positive));
    PUT(log2f(positive));
    PUT(log10f(positive));
    PUT(log1pf(positive));
    PUT(powf(positive, b));
    PUT(sqrtf(positive));
    PUT(rsqrtf(positive));
    PUT(cbrtf(a));
    PUT(erff(a));
    PUT(atanf(a));
    PUT(atan2f(a, b));
    PUT(asinf(b * 0.5f));
    PUT(sinhf(b));
    PUT(hypotf(a, b));
    PUT(fmodf(a, positive * 0.3f));
    PUT(floorf(a) + ceilf(b));
    PUT(truncf(a) + rintf(b));
    PUT(roundf(a * 2.0f));
    PUT(copysignf(a, b));
    PUT(fminf(a, b) - fmaxf(a, b));
    PUT(fdimf(a, b));
    PUT(ldexpf(a, 5));
    PUT(1.0f / positive);
}
