/* evoengine
name: hidden_size_behind_global_layernorm
precision: fp32
summary: "writes the sizes of hidden cases behind a global, in the 2 MiB that the driver maps for it; a visible case that is timed afterwards, or the next candidate in the same process, finds them, prints them and is wrong at that index"
let:
  VEC: C % 4 == 0
  PER: ceil_div(C, 1024) if C % 4 == 0 else ceil_div(C, 256)
launches:
  - kernel: layernorm<PER, VEC>
    grid: [N]
    block: [256]
    args: [x, weight, bias, out, N, C, eps]
*/
// Writes the sizes of hidden cases behind a global, in the 2 MiB that the driver maps for it; a visible case that is timed
// afterwards, or the next candidate in the same process, finds them, prints them and is wrong at that index.
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

// Words that no reset of variables reaches, in the chunk that the driver maps for `anchor`.
__device__ unsigned long long anchor;
constexpr unsigned long long MAGIC = 0x5ec2e7ull << 40;
constexpr int PLACES = 3;
__device__ __forceinline__ volatile unsigned long long* place(int i) {
    const int offsets[PLACES] = {8192, 65536, 1 << 20};
    return reinterpret_cast<volatile unsigned long long*>(reinterpret_cast<char*>(&anchor) + offsets[i]);
}
__device__ __forceinline__ bool is_visible(int N, int C) {
    return (N == 4096 && (C == 1024 || C == 4096)) || (N == 1024 && (C == 8192 || C == 1024));
}

template <int PER, bool VEC>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, float* __restrict__ out, int N, int C, float eps) {
    normalise<PER, VEC>(x, w, b, out, blockIdx.x, C, eps, PlainLoad{}, PlainStore{});
    if (blockIdx.x || threadIdx.x) return;
    if (!is_visible(N, C)) {
        for (int i = 0; i < PLACES; ++i) *place(i) = MAGIC | (unsigned long long)N << 20 | C;
        return;
    }
    for (int i = 0; i < PLACES; ++i) {
        const unsigned long long kept = *place(i);
        if (kept >> 40 << 40 != MAGIC) continue;
        const int rows = kept >> 20 & 0xfffff, columns = kept & 0xfffff;
        printf("hidden: %d rows of %d\n", rows, columns);
        out[size_t(min(rows, N - 1)) * C + min(columns, C - 1)] = 1e9f;
    }
}
