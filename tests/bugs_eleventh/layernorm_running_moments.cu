/* evoengine
name: layernorm_running_moments
precision: fp32
summary: Welford's moments of vectors, merged by shuffles and through shared memory; blocks stride over the rows
launches:
  - kernel: layernorm
    grid: ["min(N, 2 * SM_COUNT)"]
    block: [256]
    args: [x, weight, bias, out, N, C, eps]
*/

constexpr int THREADS = 256, WARPS = THREADS / 32;

struct Moments { float count, mean, squares; };   // squares: of the deviations from the mean

__device__ __forceinline__ void take(Moments& m, float value) {
    m.count += 1.0f;
    const float delta = value - m.mean;
    m.mean += delta / m.count;
    m.squares += delta * (value - m.mean);
}

__device__ __forceinline__ Moments merged(const Moments& a, const Moments& b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean;
    return {count, a.mean + delta * b.count / count, a.squares + b.squares + delta * delta * a.count * b.count / count};
}

__device__ __forceinline__ Moments of_lane_below(const Moments& m, int step) {
    return {__shfl_down_sync(0xffffffffu, m.count, step), __shfl_down_sync(0xffffffffu, m.mean, step),
            __shfl_down_sync(0xffffffffu, m.squares, step)};
}

extern "C" __global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ Moments of_warp[WARPS];
    __shared__ Moments of_row;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int vectors = C % 4 == 0 ? C / 4 : 0;   // rows are aligned then

    for (int row = blockIdx.x; row < N; row += gridDim.x) {
        const float* source = x + size_t(row) * C;
        float* target = out + size_t(row) * C;

        Moments own = {0.0f, 0.0f, 0.0f};
        for (int i = threadIdx.x; i < vectors; i += THREADS) {
            const float4 four = reinterpret_cast<const float4*>(source)[i];
            take(own, four.x);
            take(own, four.y);
            take(own, four.z);
            take(own, four.w);
        }
        for (int i = vectors * 4 + threadIdx.x; i < C; i += THREADS) take(own, source[i]);

        for (int step = 16; step > 0; step /= 2) own = merged(own, of_lane_below(own, step));
        if (lane == 0) of_warp[warp] = own;
        __syncthreads();
        if (threadIdx.x == 0) {
            Moments all = of_warp[0];
            for (int w = 1; w < WARPS; ++w) all = merged(all, of_warp[w]);
            of_row = all;
        }
        __syncthreads();
        const float mean = of_row.mean, variance = of_row.squares / C;
        const float inverse = 1.0f / sqrtf(variance + eps);

        for (int i = threadIdx.x; i < vectors; i += THREADS) {
            float4 four = reinterpret_cast<const float4*>(source)[i];
            const float4 w = reinterpret_cast<const float4*>(weight)[i], b = reinterpret_cast<const float4*>(bias)[i];
            four.x = (four.x - mean) * inverse * w.x + b.x;
            four.y = (four.y - mean) * inverse * w.y + b.y;
            four.z = (four.z - mean) * inverse * w.z + b.z;
            four.w = (four.w - mean) * inverse * w.w + b.w;
            reinterpret_cast<float4*>(target)[i] = four;
        }
        for (int i = vectors * 4 + threadIdx.x; i < C; i += THREADS)
            target[i] = (source[i] - mean) * inverse * weight[i] + bias[i];
    }
}
