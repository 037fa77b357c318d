#include <cuda_runtime.h>

// Element-wise work given as lambdas.
template <typename F>
__device__ __forceinline__ void for_each_in_grid(int n, F&& f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) f(i);
}

template <typename A, typename B>
__device__ auto compose(A a, B b) {
    return [a, b] __device__(float x) { return b(a(x)); };
}

extern "C" __global__ void lambdas(const float* __restrict__ x, float* __restrict__ y, float slope, int n) {
    auto leaky = [=] __device__(float v) -> float { return v > 0.f ? v : slope * v; };
    auto square = [](auto v) { return v * v; };
    const auto both = compose(leaky, square);
    int count = 0;
    auto bump = [&count](int by) mutable { count += by; };
    for_each_in_grid(n, [&](int i) {
        bump(2);
        y[i] = both(x[i]) + static_cast<float>(count);
    });
}
