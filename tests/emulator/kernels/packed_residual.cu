// Rows of halves in packs of 16 bytes, whose bits are copied into arrays and back: what memcpy of a known size is used for.
#include <cstring>
#include <cuda_fp16.h>

template <typename E> struct alignas(16) Pack {
    static constexpr uint SIZE = sizeof(int4) / sizeof(E);
    E items[SIZE];
    Pack() = default;
    __device__ explicit Pack(int4 bits) {
        static_assert(sizeof(bits) == sizeof(items), "");
        memcpy(&items, &bits, sizeof(bits));
    }
    __device__ int4 bits() const {
        int4 bits;
        std::memcpy(&bits, &items, sizeof(bits));
        return bits;
    }
};

extern "C" __global__ void packed_residual(const half* a, const half* b, half* sum, float* squares, uint packs) {
    const uint pack = blockIdx.x * blockDim.x + threadIdx.x;
    if (pack >= packs) return;
    using P = Pack<half>;
    const P x(__ldcs(reinterpret_cast<const int4*>(a) + pack)), y(reinterpret_cast<const int4*>(b)[pack]);
    P out;
    float square = 0.0f;
    for (uint i = 0; i < P::SIZE; ++i) {
        const float value = __half2float(x.items[i]) + __half2float(y.items[i]);
        out.items[i] = __float2half(value);
        square += value * value;
    }
    reinterpret_cast<int4*>(sum)[pack] = out.bits();
    memcpy(&squares[pack], &square, sizeof(float));
}
