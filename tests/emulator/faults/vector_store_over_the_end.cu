// 30 floats in a row: the last vector has only two of them.
__global__ void __launch_bounds__(8) vector_store_over_the_end(const float* in, float* out, int n) {
    const int i = threadIdx.x * 4;
    float x[4];
    for (int j = 0; j < 4; ++j) x[j] = i + j < n ? in[i + j] : 0.0f;
#ifdef FIXED
    if (i + 4 > n) {
        for (int j = 0; i + j < n; ++j) out[i + j] = x[j];
        return;
    }
#endif
    *reinterpret_cast<float4*>(out + i) = make_float4(x[0], x[1], x[2], x[3]);    // FAULT
}
