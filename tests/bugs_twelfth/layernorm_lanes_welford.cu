/* evoengine
name: layernorm_lanes_welford
precision: fp32
summary: a warp a row, running means and squares a lane, merged by shuffles; a grid of limited size strides over the rows
tunables:
  WARPS: [8, 4]
launches:
  - kernel: normalise
    grid: ["min(ceil_div(N, WARPS), 8 * SM_COUNT)"]
    block: [32, WARPS]
    args: [x, weight, bias, out, N, C, eps]
*/

struct Running {
    float count = 0.0f, mean = 0.0f, squares = 0.0f;

    __device__ __forceinline__ void push(float value) {
        count += 1.0f;
        const float delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }

    __device__ __forceinline__ void merge(float other_count, float other_mean, float other_squares) {
        const float all = count + other_count;
        if (all == 0.0f) return;
        const float delta = other_mean - mean, share = other_count / all;
        mean += delta * share;
        squares += other_squares + delta * delta * count * share;
        count = all;
    }
};

__global__ void __launch_bounds__(32 * WARPS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          int N, int C, float eps) {
    const int lane = threadIdx.x;
    const int quads = C % 4 == 0 ? C / 4 : 0;   // only then every row is aligned
    for (int row = blockIdx.x * WARPS + threadIdx.y; row < N; row += gridDim.x * WARPS) {
        const float* from = x + size_t(row) * C;
        float* to = out + size_t(row) * C;
        const float pivot = from[0];   // near the mean, so that less is lost than with the numbers themselves

        Running own;
        for (int i = lane; i < quads; i += 32) {
            const float4 four = reinterpret_cast<const float4*>(from)[i];
            own.push(four.x - pivot);
            own.push(four.y - pivot);
            own.push(four.z - pivot);
            own.push(four.w - pivot);
        }
        for (int i = quads * 4 + lane; i < C; i += 32) own.push(from[i] - pivot);
        for (int step = 16; step > 0; step /= 2) {
            const float count = __shfl_down_sync(0xffffffffu, own.count, step);
            const float mean = __shfl_down_sync(0xffffffffu, own.mean, step);
            const float squares = __shfl_down_sync(0xffffffffu, own.squares, step);
            own.merge(count, mean, squares);
        }
        const float mean = __shfl_sync(0xffffffffu, own.mean, 0);
        const float variance = __shfl_sync(0xffffffffu, own.squares, 0) / C;
        const float inverse = 1.0f / sqrtf(variance + eps);

        for (int i = lane; i < quads; i += 32) {
            const float4 four = reinterpret_cast<const float4*>(from)[i];
            const float4 w = reinterpret_cast<const float4*>(weight)[i], b = reinterpret_cast<const float4*>(bias)[i];
            float4 y;
            y.x = (four.x - pivot - mean) * inverse * w.x + b.x;
            y.y = (four.y - pivot - mean) * inverse * w.y + b.y;
            y.z = (four.z - pivot - mean) * inverse * w.z + b.z;
            y.w = (four.w - pivot - mean) * inverse * w.w + b.w;
            reinterpret_cast<float4*>(to)[i] = y;
        }
        for (int i = quads * 4 + lane; i < C; i += 32) to[i] = (from[i] - pivot - mean) * inverse * weight[i] + bias[i];
    }
}
