/* evoengine
name: layernorm_warp_rows
precision: fp32
summary: a warp a row, which stays in its registers as vectors; sums by shuffles, no shared memory and no barrier
tunables:
  WARPS: [8, 4, 16]
let:
  VECTORS: ceil_div(C, 128)
  KEPT: VECTORS if C % 4 == 0 and VECTORS <= 16 else 0   # float4 a lane; 0: the row is read three times
launches:
  - kernel: layernorm<KEPT>
    grid: ["ceil_div(N, WARPS)"]
    block: [32, WARPS]
    args: [x, weight, bias, out, N, C, eps]
*/

__device__ __forceinline__ float total(float value) {
#pragma unroll
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float4 scaled(float4 v, float4 w, float4 b, float mean, float inverse) {
    return make_float4((v.x - mean) * inverse * w.x + b.x, (v.y - mean) * inverse * w.y + b.y,
                       (v.z - mean) * inverse * w.z + b.z, (v.w - mean) * inverse * w.w + b.w);
}

template <int KEPT>
__global__ void __launch_bounds__(WARPS * 32)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          int N, int C, float eps) {
    const int row = blockIdx.x * WARPS + threadIdx.y, lane = threadIdx.x;
    if (row >= N) return;
    const float* from = x + (long long)row * C;
    float* to = out + (long long)row * C;
    if constexpr (KEPT != 0) {
        float4 kept[KEPT];
        float sum = 0.0f, square = 0.0f;
#pragma unroll
        for (int i = 0; i < KEPT; ++i) {
            const int at = (i * 32 + lane) * 4;
            kept[i] = at < C ? *reinterpret_cast<const float4*>(from + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            sum += kept[i].x + kept[i].y + kept[i].z + kept[i].w;
        }
        const float mean = total(sum) / C;
#pragma unroll
        for (int i = 0; i < KEPT; ++i)
            if ((i * 32 + lane) * 4 < C) {
                const float a = kept[i].x - mean, b = kept[i].y - mean, c = kept[i].z - mean, d = kept[i].w - mean;
                square += a * a + b * b + c * c + d * d;
            }
        const float inverse = rsqrtf(total(square) / C + eps);
#pragma unroll
        for (int i = 0; i < KEPT; ++i) {
            const int at = (i * 32 + lane) * 4;
            if (at < C)
                *reinterpret_cast<float4*>(to + at) = scaled(kept[i], *reinterpret_cast<const float4*>(weight + at),
                                                             *reinterpret_cast<const float4*>(bias + at), mean, inverse);
        }
    } else {
        float sum = 0.0f, square = 0.0f;
        for (int i = lane; i < C; i += 32) sum += from[i];
        const float mean = total(sum) / C;
        for (int i = lane; i < C; i += 32) square += (from[i] - mean) * (from[i] - mean);
        const float inverse = rsqrtf(total(square) / C + eps);
        for (int i = lane; i < C; i += 32) to[i] = (from[i] - mean) * inverse * weight[i] + bias[i];
    }
}
