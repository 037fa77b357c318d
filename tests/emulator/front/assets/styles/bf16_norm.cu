#include <cuda_bf16.h>
#include <cuda/std/cmath>
#include <cuda/std/limits>
#include <cuda/std/cstdint>

// y = (x + residual) / rms * weight over bfloat16, eight at a time; also the largest magnitude of the row.
struct alignas(16) Bf16x8 {
    __nv_bfloat162 v[4];
    static constexpr int kSize = 8;
    __device__ static Bf16x8 load(const __nv_bfloat16* p) {
        union { uint4 raw; __nv_bfloat162 h[4]; } u;
        u.raw = __ldg(reinterpret_cast<const uint4*>(p));
        Bf16x8 r;
#pragma unroll
        for (int i = 0; i < 4; i++) r.v[i] = u.h[i];
        return r;
    }
    __device__ void store(__nv_bfloat16* p) const { *reinterpret_cast<uint4*>(p) = *reinterpret_cast<const uint4*>(v); }
};

template <int COLS, int THREADS = COLS / Bf16x8::kSize>
__global__ void __launch_bounds__(THREADS) bf16_norm(const __nv_bfloat16* x, const __nv_bfloat16* residual, const __nv_bfloat16* weight, __nv_bfloat16* y, float* largest) {
    static_assert(THREADS >= 32 && THREADS <= 1024 && COLS % 256 == 0);
    __shared__ float sums[THREADS / 32], tops[THREADS / 32];
    const cuda::std::int64_t base = cuda::std::int64_t(blockIdx.x) * COLS + threadIdx.x * 8;
    Bf16x8 a = Bf16x8::load(x + base);
    const Bf16x8 b = Bf16x8::load(residual + base), w = Bf16x8::load(weight + threadIdx.x * 8);
    float sum = 0.f, top = cuda::std::numeric_limits<float>::lowest();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        a.v[i] = __hadd2(a.v[i], b.v[i]);
        const float2 f = __bfloat1622float2(a.v[i]);
        sum += f.x * f.x + f.y * f.y;
        top = cuda::std::fmax(top, cuda::std::fmax(cuda::std::fabs(f.x), fabsf(f.y)));
    }
    for (int m = 16; m >= 1; m >>= 1) {
        sum += __shfl_xor_sync(0xffffffff, sum, m);
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, m));
    }
    if (!(threadIdx.x & 31)) sums[threadIdx.x >> 5] = sum, tops[threadIdx.x >> 5] = top;
    __syncthreads();
    sum = 0.f;
    for (float s : sums) sum += s;
    if (threadIdx.x == 0) {
        for (const float& t : tops) top = max(top, t);
        largest[blockIdx.x] = top;
    }
    const __nv_bfloat162 scale = __float2bfloat162_rn(rsqrtf(sum / COLS + 1e-6f));
#pragma unroll
    for (auto i = 0u; i < 4u; ++i) a.v[i] = a.v[i] * scale * w.v[i];
    a.store(y + base);
}
