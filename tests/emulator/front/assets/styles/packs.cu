#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <stdint.h>

// Vectors of any type, accumulated in float: y = x * sigmoid(x) * gate.
namespace vec {
template <typename T, int N> struct alignas(sizeof(T) * N) Pack {
    T data[N];
    __device__ T& operator[](int i) { return data[i]; }
    __device__ const T& operator[](int i) const { return data[i]; }
};

template <typename T> class Convert {
   public:
    static __device__ __forceinline__ float to(T v) { return static_cast<float>(v); }
    static __device__ __forceinline__ T from(float v) { return static_cast<T>(v); }
};
template <> class Convert<__half> {
   public:
    static __device__ __forceinline__ float to(__half v) { return __half2float(v); }
    static __device__ __forceinline__ __half from(float v) { return __float2half_rn(v); }
};
template <> class Convert<__nv_bfloat16> {
   public:
    static __device__ __forceinline__ float to(__nv_bfloat16 v) { return __bfloat162float(v); }
    static __device__ __forceinline__ __nv_bfloat16 from(float v) { return __float2bfloat16_rn(v); }
};
}  // namespace vec

template <typename scalar_t>
__global__ void swiglu(const scalar_t* __restrict__ x, const scalar_t* __restrict__ gate, scalar_t* __restrict__ out, int64_t numel) {
    constexpr int kVec = 16 / sizeof(scalar_t);
    using P = vec::Pack<scalar_t, kVec>;
    static_assert(sizeof(P) == 16 && alignof(P) == 16, "one 128-bit access");
    const int64_t idx = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kVec;
    if (idx + kVec <= numel) {
        const P a = *reinterpret_cast<const P*>(x + idx);
        const P g = *reinterpret_cast<const P*>(gate + idx);
        P o;
#pragma unroll
        for (int i = 0; i < kVec; ++i) {
            const float v = vec::Convert<scalar_t>::to(a[i]);
            o[i] = vec::Convert<scalar_t>::from(__fdividef(v, 1.f + __expf(-v)) * vec::Convert<scalar_t>::to(g[i]));
        }
        *reinterpret_cast<P*>(out + idx) = o;
    } else {
        for (int64_t i = idx; i < numel; ++i) {
            const float v = vec::Convert<scalar_t>::to(x[i]);
            out[i] = vec::Convert<scalar_t>::from(v / (1.f + expf(-v)) * vec::Convert<scalar_t>::to(gate[i]));
        }
    }
}
