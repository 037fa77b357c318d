#include <cuda_runtime.h>
#include <cfloat>
#include <limits>

// Softmax in one pass: a pair of maximum and denominator with an operator of its own.
struct __align__(8) MD {
    float m;
    float d;
    __host__ __device__ MD() : m(-std::numeric_limits<float>::infinity()), d(0.f) {}
    __host__ __device__ constexpr MD(float m_, float d_) : m(m_), d(d_) {}
    __device__ __forceinline__ friend MD operator+(const MD& a, const MD& b) {
        const bool a_bigger = a.m > b.m;
        const MD& bigger = a_bigger ? a : b;
        const MD& smaller = a_bigger ? b : a;
        if (smaller.m == -INFINITY) return bigger;
        return MD(bigger.m, bigger.d + smaller.d * __expf(smaller.m - bigger.m));
    }
    __device__ MD& operator+=(const MD& other) { return *this = *this + other; }
};

template <int THREADS>
struct BlockReduce {
    static_assert(THREADS % 32 == 0, "whole warps");
    static constexpr int kWarps = THREADS / 32;
    struct TempStorage { float2 partial[kWarps]; };
    TempStorage& storage;
    __device__ explicit BlockReduce(TempStorage& s) : storage(s) {}
    __device__ MD all(MD v) {
        for (int offset = 16; offset; offset /= 2) {
            MD other;
            other.m = __shfl_down_sync(~0u, v.m, offset);
            other.d = __shfl_down_sync(~0u, v.d, offset);
            v += other;
        }
        if ((threadIdx.x & 31) == 0) storage.partial[threadIdx.x >> 5] = make_float2(v.m, v.d);
        __syncthreads();
        v = MD{};
#pragma unroll
        for (int w = 0; w < kWarps; w++) v += reinterpret_cast<const MD&>(storage.partial[w]);
        return v;
    }
};

template <int THREADS>
__global__ void softmax(const float* input, float* output, int cols) {
    using Reduce = BlockReduce<THREADS>;
    __shared__ typename Reduce::TempStorage temp;
    const float* row = input + static_cast<long long>(blockIdx.x) * cols;
    float* out = output + static_cast<long long>(blockIdx.x) * cols;
    MD mine;
    for (int i = threadIdx.x; i < cols; i += THREADS) mine += MD(row[i], 1.0f);
    const MD total = Reduce(temp).all(mine);
    const float inv = __frcp_rn(total.d);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] = __expf(row[i] - total.m) * inv;
}
