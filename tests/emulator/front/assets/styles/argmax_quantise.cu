#include <cuda_runtime.h>
#include <cstdint>

// The row's largest by a 64-bit atomic, then the row in int8 with its scale, four to a word, and a look at them by byte.
using u64 = unsigned long long int;
static __device__ __forceinline__ u64 keyed(float v, int index) {
    uint32_t u = __float_as_uint(v);
    u = (u & 0x80000000u) ? ~u : (u | 0x80000000u);
    return (static_cast<u64>(u) << 32) | static_cast<uint32_t>(~index);
}

template <typename T, T V> struct Constant { static constexpr T value = V; constexpr __device__ operator T() const noexcept { return value; } };
template <int BITS> using MaxOf = Constant<int, (1 << (BITS - 1)) - 1>;

__global__ void argmax_quantise(const float* __restrict__ x, int* __restrict__ argmax, char4* __restrict__ q, float* scales, unsigned* bytes, int cols) {
    __shared__ u64 best;
    __shared__ int magnitude;
    if (threadIdx.x == 0) { best = 0ULL; magnitude = 0; }
    __syncthreads();
    const float* row = &x[blockIdx.x * cols];
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        atomicMax(&best, keyed(row[i], i));
        atomicMax(&magnitude, __float_as_int(fabsf(row[i])));
    }
    __syncthreads();
    const float scale = __int_as_float(magnitude) / float(MaxOf<8>{});
    if (!threadIdx.x) {
        argmax[blockIdx.x] = ~static_cast<int>(best & 0xffffffffu);
        scales[blockIdx.x] = scale;
    }
    for (int i = threadIdx.x; i < cols / 4; i += blockDim.x) {
        const float4 v = reinterpret_cast<const float4*>(row)[i];
        auto round = [scale](float f) { return static_cast<signed char>(__float2int_rn(f / scale)); };
        const char4 c = make_char4(round(v.x), round(v.y), round(v.z), round(v.w));
        const int at = blockIdx.x * (cols / 4) + i;
        q[at] = c;
        const unsigned word = *reinterpret_cast<const unsigned*>(&c);
        bytes[at] = __vabsdiffu4(__vmaxs4(word, 0u), __vadd4(word, 0x01010101u)) ^ __vcmpgts4(word, 0x20202020u);
    }
}
