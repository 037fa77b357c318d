// One launch: float4 loads, shuffles, partial sums, and the block that finishes last adds them up.
__device__ unsigned int retired = 0;

template <int BLOCK>
__device__ float block_sum(float v, float* scratch) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < BLOCK / 32; ++w) total += scratch[w];
    return total;
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) reduce_last_block(const float* __restrict__ x, float* partial, float* result, int n) {
    __shared__ float scratch[BLOCK / 32];
    __shared__ bool is_last;

    float v = 0.0f;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n / 4; i += gridDim.x * BLOCK) {
        float4 q = x4[i];
        v += (q.x + q.y) + (q.z + q.w);
    }
    int tail = (n / 4) * 4 + threadIdx.x;
    if (blockIdx.x == 0 && tail < n) v += x[tail];

    float sum = block_sum<BLOCK>(v, scratch);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        unsigned int ticket = atomicInc(&retired, gridDim.x - 1);
        is_last = (ticket == gridDim.x - 1);
    }
    __syncthreads();

    if (is_last) {
        const volatile float* seen = partial;
        v = 0.0f;
        for (int i = threadIdx.x; i < gridDim.x; i += BLOCK) v += seen[i];
        sum = block_sum<BLOCK>(v, scratch);
        if (threadIdx.x == 0) *result = sum;
    }
}
