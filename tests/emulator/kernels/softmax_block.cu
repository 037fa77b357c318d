// Softmax with one block a row, in three passes over global memory.
__device__ float reduce_max(float v, float* buf) {
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] = fmaxf(buf[threadIdx.x], buf[threadIdx.x + s]);
        __syncthreads();
    }
    float r = buf[0];
    __syncthreads();
    return r;
}

__device__ float reduce_sum(float v, float* buf) {
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) buf[threadIdx.x] += buf[threadIdx.x + s];
        __syncthreads();
    }
    float r = buf[0];
    __syncthreads();
    return r;
}

extern "C" __global__ void softmax_block(const float* input, float* output, int cols) {
    extern __shared__ float buf[];
    const float* in = input + (long long)blockIdx.x * cols;
    float* out = output + (long long)blockIdx.x * cols;

    float m = -3.402823466e+38f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, in[i]);
    m = reduce_max(m, buf);

    float s = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float e = __expf(in[i] - m);
        out[i] = e;
        s += e;
    }
    s = reduce_sum(s, buf);

    float inv = 1.0f / s;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] *= inv;
}
