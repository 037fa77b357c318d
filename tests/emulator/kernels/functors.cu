// Templates, functors, a lambda and an overloaded operator: one kernel for several element-wise maps.
struct Square {
    template <typename T>
    __device__ T operator()(T x) const { return x * x; }
};

template <int K>
struct AddConstant {
    template <typename T>
    __device__ T operator()(T x) const { return x + static_cast<T>(K); }
};

template <typename F, typename G>
struct Compose {
    F f;
    G g;
    template <typename T>
    __device__ T operator()(T x) const { return f(g(x)); }
};

template <typename T, typename F>
__global__ void functors(const T* in, T* out, int n) {
    const F f{};
    auto clamp = [n](T x) { return x > static_cast<T>(n) ? static_cast<T>(n) : x; };
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = clamp(f(in[i]));
}
