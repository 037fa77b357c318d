/* evoengine
name: rms_norm_sm_queues
precision: fp32
summary: rows lie in eight queues; a block begins with the one of its multiprocessor and helps with the others afterwards
tunables:
  THREADS: [128, 256]
launches:
  - kernel: rms_norm
    grid: ["min(N, 4 * SM_COUNT)"]
    block: [THREADS]
    args: [x, weight, out, N, C, eps]
*/
constexpr unsigned QUEUES = 8;
__device__ unsigned taken[QUEUES];
__device__ unsigned leaving;

__device__ unsigned multiprocessor() {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

__global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int N, int C, float eps) {
    __shared__ unsigned first, row;
    __shared__ float sums[THREADS / 32];
    if (threadIdx.x == 0) first = multiprocessor();   // read once, so that all threads agree on the queues
    __syncthreads();
    for (unsigned i = 0; i < QUEUES; ++i) {
        const unsigned queue = (first + i) % QUEUES;
        while (true) {
            if (threadIdx.x == 0) row = atomicAdd(&taken[queue], 1u) * QUEUES + queue;
            __syncwarp();   // the shuffles below need a whole warp; ptxas does not bring it together for __syncthreads
            __syncthreads();
            const size_t mine = row;
            if (mine >= N) break;
            float s = 0.0f;
            for (int c = threadIdx.x; c < C; c += THREADS) s += x[mine * C + c] * x[mine * C + c];
            for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
            if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
            __syncthreads();
            s = 0.0f;
            for (int w = 0; w < THREADS / 32; ++w) s += sums[w];
            const float scale = 1.0f / sqrtf(s / C + eps);
            for (int c = threadIdx.x; c < C; c += THREADS) out[mine * C + c] = x[mine * C + c] * scale * weight[c];
            __syncthreads();
        }
        __syncthreads();   // all have seen that the queue is empty
    }
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&leaving, 1u) == gridDim.x - 1) {
            for (unsigned& t : taken) t = 0;
            leaving = 0;
        }
    }
}
