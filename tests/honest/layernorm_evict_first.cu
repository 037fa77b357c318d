/* evoengine
name: layernorm_evict_first
precision: fp32
summary: streamed rows carry an L2 policy that evicts them first; weight and bias are read without one
tunables:
  THREADS: [256, 512, 128]
let:
  FOUR: C % 4 == 0
launches:
  - kernel: layernorm<FOUR>
    grid: [N]
    block: [THREADS]
    args: [x, weight, bias, out, C, eps]
*/
// A row is read once from memory and written once; weight and bias are read by every block.
__device__ __forceinline__ unsigned long long streaming() {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

template <bool FOUR> struct Access;
template <> struct Access<true> {
    static constexpr int WIDTH = 4;
    static __device__ __forceinline__ void load(float (&v)[4], const float* p, unsigned long long policy) {
        asm volatile("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "l"(p), "l"(policy));
    }
    static __device__ __forceinline__ void store(float* p, const float (&v)[4], unsigned long long policy) {
        asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
                     :: "l"(p), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "l"(policy) : "memory");
    }
};
template <> struct Access<false> {
    static constexpr int WIDTH = 1;
    static __device__ __forceinline__ void load(float (&v)[1], const float* p, unsigned long long policy) {
        asm volatile("ld.global.nc.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v[0]) : "l"(p), "l"(policy));
    }
    static __device__ __forceinline__ void store(float* p, const float (&v)[1], unsigned long long policy) {
        asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(p), "f"(v[0]), "l"(policy) : "memory");
    }
};

__device__ __forceinline__ float2 block_sums(float2 v) {
    __shared__ float2 warps[THREADS / 32];
    for (int o = 16; o; o /= 2) v.x += __shfl_xor_sync(~0u, v.x, o), v.y += __shfl_xor_sync(~0u, v.y, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    float2 total = warps[0];
    for (int w = 1; w < THREADS / 32; ++w) total.x += warps[w].x, total.y += warps[w].y;
    return total;
}

template <bool FOUR>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* x, const float* weight, const float* bias, float* out, int C, float eps) {
    using A = Access<FOUR>;
    const unsigned long long stream = streaming();
    x += size_t(blockIdx.x) * C, out += size_t(blockIdx.x) * C;
    float v[A::WIDTH];
    float2 s = {0.0f, 0.0f};
    for (int i = threadIdx.x * A::WIDTH; i < C; i += THREADS * A::WIDTH) {
        A::load(v, x + i, stream);
        for (float e : v) s.x += e;
    }
    const float mean = block_sums(s).x / C;
    s = {0.0f, 0.0f};
    for (int i = threadIdx.x * A::WIDTH; i < C; i += THREADS * A::WIDTH) {
        A::load(v, x + i, stream);
        for (float e : v) s.x += e - mean, s.y += (e - mean) * (e - mean);
    }
    s = block_sums(s);
    const float low = s.x / C, inverse = rsqrtf(fmaxf(s.y / C - low * low, 0.0f) + eps);
    for (int i = threadIdx.x * A::WIDTH; i < C; i += THREADS * A::WIDTH) {
        A::load(v, x + i, stream);
        for (int j = 0; j < A::WIDTH; ++j) v[j] = (v[j] - mean - low) * inverse * __ldg(weight + i + j) + __ldg(bias + i + j);
        A::store(out + i, v, stream);
    }
}
