// Static and dynamic shared memory together; the dynamic part is cut into arrays of different types.
extern "C" __global__ void mixed_shared(const float* x, double* out, int per_block) {
    __shared__ int order[64];
    __shared__ __align__(16) float4 quads[16];
    extern __shared__ __align__(16) unsigned char pool[];
    double* sums = reinterpret_cast<double*>(pool);
    float* values = reinterpret_cast<float*>(sums + blockDim.x);
    unsigned char* flags = reinterpret_cast<unsigned char*>(values + per_block);

    const int t = threadIdx.x;
    for (int i = t; i < per_block; i += blockDim.x) {
        values[i] = x[blockIdx.x * per_block + i];
        flags[i] = values[i] > 0.0f;
    }
    if (t < 64) order[t] = 63 - t;
    if (t < 16) quads[t] = make_float4(t, t + 0.25f, t + 0.5f, t + 0.75f);
    __syncthreads();

    double sum = 0.0;
    for (int i = t; i < per_block; i += blockDim.x)
        if (flags[per_block - 1 - i]) sum += values[i];
    sums[t] = sum;
    __syncthreads();
    int other = order[t & 63] % blockDim.x;
    const float* flat = reinterpret_cast<const float*>(quads);
    out[blockIdx.x * blockDim.x + t] = sums[other] + flat[t & 63];
}
