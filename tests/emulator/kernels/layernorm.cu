// Layer normalisation, mean and variance by Welford's method, merged by shuffles and shared memory.
struct Moments {
    float mean, m2;
    int count;
};

__device__ Moments combine(const Moments& a, const Moments& b) {
    Moments r;
    r.count = a.count + b.count;
    if (r.count == 0) return Moments{0.0f, 0.0f, 0};
    float delta = b.mean - a.mean;
    float share = (float)b.count / (float)r.count;
    r.mean = fmaf(delta, share, a.mean);
    r.m2 = a.m2 + b.m2 + delta * delta * (float)a.count * share;
    return r;
}

__global__ void layernorm(const float* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,
                          float* __restrict__ y, int cols, float eps) {
    extern __shared__ char raw[];
    Moments* shared = reinterpret_cast<Moments*>(raw);
    const float* row = x + (size_t)blockIdx.x * cols;

    Moments m = {0.0f, 0.0f, 0};
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = row[i];
        m.count += 1;
        float delta = v - m.mean;
        m.mean += delta / m.count;
        m.m2 = fmaf(delta, v - m.mean, m.m2);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        Moments o;
        o.mean = __shfl_down_sync(0xffffffff, m.mean, offset);
        o.m2 = __shfl_down_sync(0xffffffff, m.m2, offset);
        o.count = __shfl_down_sync(0xffffffff, m.count, offset);
        m = combine(m, o);
    }
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = m;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < (int)blockDim.x / 32; ++w) m = combine(m, shared[w]);
        shared[0] = m;
    }
    __syncthreads();
    float mean = shared[0].mean;
    float rstd = rsqrtf(shared[0].m2 / cols + eps);
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        y[(size_t)blockIdx.x * cols + i] = fmaf((row[i] - mean) * rstd, gamma[i], beta[i]);
}
