#include <cuda_runtime.h>
#include <math.h>

// y = gelu(x W^T + b) * scale, a warp for an output.
#define WARP_SIZE 32
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define FULL_MASK 0xffffffffu

namespace detail {
struct SumOp { __device__ __forceinline__ float operator()(const float& a, const float& b) const { return a + b; } };
struct MaxOp { __device__ __forceinline__ float operator()(const float& a, const float& b) const { return fmaxf(a, b); } };

template <template <typename> class, typename T> struct always_false { static constexpr bool value = false; };

template <typename Op, typename T, int Width = WARP_SIZE>
__device__ __forceinline__ T warp_reduce(T val, Op op = Op{}) {
    static_assert((Width & (Width - 1)) == 0 && Width <= WARP_SIZE, "Width must be a power of two");
#pragma unroll
    for (int offset = Width >> 1; offset > 0; offset >>= 1) val = op(val, __shfl_xor_sync(FULL_MASK, val, offset, Width));
    return val;
}

template <bool FAST>
__device__ __forceinline__ float gelu(float x) {
    if constexpr (FAST) {
        constexpr float kAlpha = 0.7978845608028654f, kBeta = 0.044715f;
        return 0.5f * x * (1.0f + tanhf(kAlpha * (x + kBeta * x * x * x)));
    } else {
        return 0.5f * x * (1.f + erff(x * static_cast<float>(M_SQRT1_2)));
    }
}
}  // namespace detail

template <bool FAST, int WARPS>
__global__ void __launch_bounds__(WARPS * WARP_SIZE, 2)
fused_linear(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y,
             const int rows, const int in_features, const int out_features, const float scale) {
    const int warp_id = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    const int col = blockIdx.x * WARPS + warp_id;
    const int row = blockIdx.y;
    if (row >= rows || col >= out_features) return;
    const float4* __restrict__ x4 = reinterpret_cast<const float4*>(x + (size_t)row * in_features);
    const float4* __restrict__ w4 = reinterpret_cast<const float4*>(w + (size_t)col * in_features);
    float acc = 0.0f;
#pragma unroll 4
    for (int k = lane; k < in_features / 4; k += WARP_SIZE) {
        const float4 a = __ldg(&x4[k]);
        const float4 b = __ldg(&w4[k]);
        acc += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int k = (in_features / 4) * 4 + lane; k < in_features; k += WARP_SIZE) acc = fmaf(x[(size_t)row * in_features + k], w[(size_t)col * in_features + k], acc);
    acc = detail::warp_reduce<detail::SumOp>(acc);
    if (lane == 0) y[(size_t)row * out_features + col] = detail::gelu<FAST>(acc + bias[col]) * scale;
}
