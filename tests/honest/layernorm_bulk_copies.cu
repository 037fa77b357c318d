/* evoengine
name: layernorm_bulk_copies
precision: fp32
summary: the bulk copy engine brings whole rows to shared memory, two ahead, with mbarriers; persistent blocks
tunables:
  THREADS: [256, 128]
let:
  BULK: C % 4 == 0
  PITCH: round_up(C, 32)
require:
  - 12 * PITCH + 64 <= MAX_SHARED_BYTES
launches:
  - kernel: layernorm<BULK>
    grid: ["min(N, 2 * SM_COUNT)"]
    block: [THREADS]
    shared: 12 * PITCH
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/
constexpr int STAGES = 3;

__device__ __forceinline__ unsigned to_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// One thread starts the copy of a row; the barrier completes when all its bytes have arrived.
__device__ __forceinline__ void start_row(unsigned to, const float* from, unsigned bytes, unsigned barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

__device__ float block_sum(float v) {
    __shared__ float warps[THREADS / 32];
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < THREADS / 32; ++w) v += warps[w];
    return v;
}

template <bool BULK>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          int N, int C, int pitch, float eps) {
    extern __shared__ __align__(128) float rows[];
    __shared__ __align__(8) unsigned long long barriers[STAGES];
    if (BULK && threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(to_shared(&barriers[s])) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    auto fetch = [&](int turn) {
        const long long row = blockIdx.x + (long long)turn * gridDim.x;
        if (row < N) start_row(to_shared(rows + turn % STAGES * pitch), x + row * C, C * 4, to_shared(&barriers[turn % STAGES]));
    };
    if (BULK && threadIdx.x == 0)
        for (int turn = 0; turn < STAGES - 1; ++turn) fetch(turn);
    for (int turn = 0; blockIdx.x + turn * gridDim.x < N; ++turn) {
        const size_t at = size_t(blockIdx.x + turn * gridDim.x) * C;
        float* row = rows + turn % STAGES * pitch;
        if (BULK) {
            if (threadIdx.x == 0) fetch(turn + STAGES - 1);   // into the stage that all threads left before the last barrier
            wait_for(to_shared(&barriers[turn % STAGES]), turn / STAGES % 2);
        } else {
            for (int i = threadIdx.x; i < C; i += THREADS) row[i] = x[at + i];
        }
        float s = 0.0f, d1 = 0.0f, d2 = 0.0f;
        for (int i = threadIdx.x; i < C; i += THREADS) s += row[i];
        const float mean = block_sum(s) / C;
        for (int i = threadIdx.x; i < C; i += THREADS) d1 += row[i] - mean, d2 += (row[i] - mean) * (row[i] - mean);
        d1 = block_sum(d1) / C;
        const float rstd = rsqrtf(fmaxf(block_sum(d2) / C - d1 * d1, 0.0f) + eps);
        for (int i = threadIdx.x; i < C; i += THREADS) out[at + i] = (row[i] - mean - d1) * rstd * weight[i] + bias[i];
        __syncthreads();
    }
}
