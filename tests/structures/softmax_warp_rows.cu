/* evoengine
name: softmax_warp_rows
precision: fp32
summary: a warp a row, which stays in registers as vectors; maximum and sum by shuffles, no shared memory
tunables:
  WARPS: [8, 4]
let:
  VECTORS: ceil_div(C, 128)
launches:
  - kernel: softmax<VECTORS>
    grid: ["ceil_div(N, WARPS)"]
    block: [32, WARPS]
    args: [x, out, N, C]
*/
template <int VECTORS>
__global__ void __launch_bounds__(32 * WARPS)
softmax(const float* __restrict__ x, float* __restrict__ out, int N, int C) {
    const int row = blockIdx.x * WARPS + threadIdx.y, lane = threadIdx.x;
    if (row >= N) return;
    const float4* from = reinterpret_cast<const float4*>(x + size_t(row) * C);
    float4* to = reinterpret_cast<float4*>(out + size_t(row) * C);
    float4 kept[VECTORS];
    float top = -3.4e38f;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const int at = i * 32 + lane;
        kept[i] = at < C / 4 ? from[at] : make_float4(-3.4e38f, -3.4e38f, -3.4e38f, -3.4e38f);
        top = fmaxf(top, fmaxf(fmaxf(kept[i].x, kept[i].y), fmaxf(kept[i].z, kept[i].w)));
    }
#pragma unroll
    for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        kept[i] = make_float4(__expf(kept[i].x - top), __expf(kept[i].y - top), __expf(kept[i].z - top), __expf(kept[i].w - top));
        sum += kept[i].x + kept[i].y + kept[i].z + kept[i].w;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    const float factor = 1.0f / sum;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const int at = i * 32 + lane;
        if (at < C / 4) to[at] = make_float4(kept[i].x * factor, kept[i].y * factor, kept[i].z * factor, kept[i].w * factor);
    }
}
