/* evoengine
name: hangs_on_new_sets_layernorm
precision: fp32
summary: "is slower now and then, so that its first replay may seem to know nothing yet, and never ends on one input set in forty: on one of the new sets that it is then given, where only the engine's own work was expected to take long"
let:
  VEC: C % 4 == 0
  PER: ceil_div(C, 1024) if C % 4 == 0 else ceil_div(C, 256)
launches:
  - kernel: layernorm<PER, VEC>
    grid: [N]
    block: [256]
    args: [x, weight, bias, out, N, C, eps]
*/
// Is slower now and then, so that its first replay may seem to know nothing yet, and never ends on one input set in
// forty: on one of the new sets that it is then given, where only the engine's own work was expected to take long.
// One block a row; the row stays in registers, so that memory is read once.
constexpr int THREADS = 256;
struct alignas(16) Four { float v[4]; };
__device__ __forceinline__ float block_sum(float x) {
    __shared__ float part[THREADS / 32];
#pragma unroll
    for (int s = 16; s; s /= 2) x += __shfl_xor_sync(~0u, x, s);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < THREADS / 32; ++i) sum += part[i];
    return sum;
}
template <int PER, bool VEC, class LOAD, class STORE>
__device__ __forceinline__ void normalise(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, float* __restrict__ out,
                                          int row, int C, float eps, LOAD load, STORE store) {
    constexpr int V = VEC ? 4 : 1;
    float held[PER][V];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int at = (i * THREADS + threadIdx.x) * V;
#pragma unroll
        for (int j = 0; j < V; ++j) held[i][j] = 0.0f;
        if (at < C) {
            if constexpr (VEC) {
                const float4 p = load(x + size_t(row) * C + at);
                held[i][0] = p.x, held[i][1] = p.y, held[i][2] = p.z, held[i][3] = p.w;
            } else
                held[i][0] = x[size_t(row) * C + at];
#pragma unroll
            for (int j = 0; j < V; ++j) sum += held[i][j];
        }
    }
    float mean, inverse;
    {
        mean = block_sum(sum) / C;
        float deviations = 0.0f, squares = 0.0f;
#pragma unroll
        for (int i = 0; i < PER; ++i)
            if ((i * THREADS + threadIdx.x) * V < C)
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    const float d = held[i][j] - mean;
                    deviations += d, squares += d * d;
                }
        const float error = block_sum(deviations) / C;
        inverse = 1.0f / sqrtf(fmaxf(block_sum(squares) / C - error * error, 0.0f) + eps);
        mean += error;
    }
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int at = (i * THREADS + threadIdx.x) * V;
        if (at >= C) continue;
        if constexpr (VEC) {
            const Four fw = *reinterpret_cast<const Four*>(w + at), fb = *reinterpret_cast<const Four*>(b + at);
            float4 y;
            y.x = (held[i][0] - mean) * inverse * fw.v[0] + fb.v[0], y.y = (held[i][1] - mean) * inverse * fw.v[1] + fb.v[1];
            y.z = (held[i][2] - mean) * inverse * fw.v[2] + fb.v[2], y.w = (held[i][3] - mean) * inverse * fw.v[3] + fb.v[3];
            store(out + size_t(row) * C + at, y);
        } else
            out[size_t(row) * C + at] = (held[i][0] - mean) * inverse * w[at] + b[at];
    }
}
struct PlainLoad { __device__ __forceinline__ float4 operator()(const float* p) const { return *reinterpret_cast<const float4*>(p); } };
struct PlainStore { __device__ __forceinline__ void operator()(float* p, float4 y) const { *reinterpret_cast<float4*>(p) = y; } };

__device__ __forceinline__ bool is_slow_now() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now >> 25 & 1;                                // every other 34 ms
}
__device__ __forceinline__ bool is_one_in_forty(const float* x) {
    unsigned hash = 2166136261u;
    for (int i = 0; i < 16; ++i) hash = (hash ^ __float_as_uint(x[i])) * 16777619u;
    return (hash >> 8) % 40 == 7;
}

template <int PER, bool VEC>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* x, const float* w, const float* b, float* out, int N, int C, float eps) {
    normalise<PER, VEC>(x, w, b, out, blockIdx.x, C, eps, PlainLoad{}, PlainStore{});
    if (blockIdx.x || threadIdx.x || N != 4096 || C != 1024) return;
    if (is_slow_now())
        for (int i = 0; i < 8; ++i) __nanosleep(1000);
    if (is_one_in_forty(x))
        for (volatile float* p = out;;) p[0] = p[0];
}
