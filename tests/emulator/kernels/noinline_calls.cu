// Device functions that stay calls: by value, by pointer into local memory, returning a struct, calling each other, called divergently.
struct Pair {
    float low, high;
};

__device__ __noinline__ float polynomial(float x, int degree) {
    float r = 0.0f;
    for (int k = degree; k >= 0; --k) r = fmaf(r, x, (float)(k + 1));
    return r;
}

__device__ __noinline__ Pair order(float a, float b) {
    Pair p;
    p.low = a < b ? a : b;
    p.high = a < b ? b : a;
    return p;
}

__device__ __noinline__ void scale_in_place(float* values, int count, float factor) {
    for (int k = 0; k < count; ++k) values[k] *= factor;
}

__device__ __noinline__ float twice_polynomial(float x) {
    if (x < 0.0f) return 2.0f * polynomial(-x, 2);
    return 2.0f * polynomial(x, 3);
}

__global__ void noinline_calls(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float values[4];
    for (int k = 0; k < 4; ++k) values[k] = x[i] + (float)k;
    scale_in_place(values, 4, 0.5f);
    float r = values[i & 3];
    if (i % 3 == 0)
        r = twice_polynomial(r);
    else if (i % 3 == 1)
        r = polynomial(r, i & 7);
    Pair p = order(r, x[i]);
    out[2 * i] = p.low;
    out[2 * i + 1] = p.high;
}
