// GELU, exact with erff or by the tanh approximation, four elements a thread.
template <bool APPROXIMATE>
__device__ float gelu_one(float x) {
    if (APPROXIMATE) {
        const float k = 0.7978845608028654f;
        return 0.5f * x * (1.0f + tanhf(k * (x + 0.044715f * x * x * x)));
    }
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

template <bool APPROXIMATE>
__global__ void gelu(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4*>(x + i);
        v.x = gelu_one<APPROXIMATE>(v.x);
        v.y = gelu_one<APPROXIMATE>(v.y);
        v.z = gelu_one<APPROXIMATE>(v.z);
        v.w = gelu_one<APPROXIMATE>(v.w);
        *reinterpret_cast<float4*>(y + i) = v;
    } else {
        for (; i < n; ++i) y[i] = gelu_one<APPROXIMATE>(x[i]);
    }
}
