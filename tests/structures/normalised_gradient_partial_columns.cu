/* evoengine
name: normalised_gradient_partial_columns
precision: fp32
summary: persistent blocks take rows in turn and keep the sums of their columns in registers; a second launch adds those of all blocks
let:
  BLOCKS: min(2 * SM_COUNT, N)
scratch:
  weights_parts: {dtype: float32, shape: [BLOCKS, C]}
  shifts_parts: {dtype: float32, shape: [BLOCKS, C]}
launches:
  - kernel: rows
    grid: [BLOCKS]
    block: [256]
    args: [x, dy, weights, mean, factor, dx, weights_parts, shifts_parts, N, C]
  - kernel: columns
    grid: ["ceil_div(C, 32)"]
    block: [32, 16]
    args: [weights_parts, shifts_parts, of_weights, of_shifts, BLOCKS, C]
*/
__global__ void __launch_bounds__(256)
rows(const float* __restrict__ x, const float* __restrict__ dy, const float* __restrict__ weights, const float* __restrict__ mean, const float* __restrict__ factor,
     float* __restrict__ dx, float* __restrict__ weights_parts, float* __restrict__ shifts_parts, int N, int C) {
    __shared__ float2 of_warp[2][8];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    const bool inside = t * 4 < C;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float4 w = inside ? reinterpret_cast<const float4*>(weights)[t] : zero;
    float4 dw = zero, ds = zero;
    int turn = 0;
    for (int row = blockIdx.x; row < N; row += gridDim.x, turn ^= 1) {
        const size_t at = size_t(row) * (C / 4) + t;
        float4 v = inside ? reinterpret_cast<const float4*>(x)[at] : zero;
        const float4 g = inside ? reinterpret_cast<const float4*>(dy)[at] : zero;
        const float m = mean[row], f = factor[row];
        v = make_float4((v.x - m) * f, (v.y - m) * f, (v.z - m) * f, (v.w - m) * f);
        const float4 gw = make_float4(g.x * w.x, g.y * w.y, g.z * w.z, g.w * w.w);
        float2 sum = make_float2(gw.x + gw.y + gw.z + gw.w, gw.x * v.x + gw.y * v.y + gw.z * v.z + gw.w * v.w);
        if (!inside) sum = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int step = 16; step; step /= 2) {
            sum.x += __shfl_xor_sync(~0u, sum.x, step);
            sum.y += __shfl_xor_sync(~0u, sum.y, step);
        }
        if (lane == 0) of_warp[turn][warp] = sum;
        __syncthreads();
        sum = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum.x += of_warp[turn][i].x, sum.y += of_warp[turn][i].y;
        sum.x /= C, sum.y /= C;
        if (inside)
            reinterpret_cast<float4*>(dx)[at] = make_float4(f * (gw.x - sum.x - v.x * sum.y), f * (gw.y - sum.x - v.y * sum.y),
                                                            f * (gw.z - sum.x - v.z * sum.y), f * (gw.w - sum.x - v.w * sum.y));
        dw = make_float4(dw.x + g.x * v.x, dw.y + g.y * v.y, dw.z + g.z * v.z, dw.w + g.w * v.w);
        ds = make_float4(ds.x + g.x, ds.y + g.y, ds.z + g.z, ds.w + g.w);
    }
    if (inside) {
        reinterpret_cast<float4*>(weights_parts)[size_t(blockIdx.x) * (C / 4) + t] = dw;
        reinterpret_cast<float4*>(shifts_parts)[size_t(blockIdx.x) * (C / 4) + t] = ds;
    }
}

__global__ void __launch_bounds__(512)
columns(const float* __restrict__ weights_parts, const float* __restrict__ shifts_parts, float* __restrict__ of_weights, float* __restrict__ of_shifts, int parts, int C) {
    __shared__ float sums[2][16][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float first = 0.0f, second = 0.0f;
    if (column < C)
        for (int i = threadIdx.y; i < parts; i += 16) {
            first += weights_parts[size_t(i) * C + column];
            second += shifts_parts[size_t(i) * C + column];
        }
    sums[0][threadIdx.y][threadIdx.x] = first;
    sums[1][threadIdx.y][threadIdx.x] = second;
    __syncthreads();
    if (threadIdx.y < 2 && column < C) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += sums[threadIdx.y][i][threadIdx.x];
        (threadIdx.y ? of_shifts : of_weights)[column] = sum;
    }
}
