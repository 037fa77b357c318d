/* evoengine
name: rms_norm_register_row
precision: fp32
summary: a block keeps its row in registers, vector loads marked non-coherent and stores marked streaming in PTX
tunables:
  THREADS: [256, 128, 512]
let:
  WIDE: C % 4 == 0
  HELD: ceil_div(C, 4 * THREADS) if WIDE else ceil_div(C, THREADS)
require:
  - HELD <= 32
launches:
  - kernel: "rms_norm<WIDE, HELD>"
    grid: [N]
    block: [THREADS]
    args: [x, weight, out, C, eps]
*/
template <bool WIDE> struct Lane { float at[WIDE ? 4 : 1]; };

__device__ __forceinline__ void fetch(Lane<true>& v, const float* p) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.at[0]), "=f"(v.at[1]), "=f"(v.at[2]), "=f"(v.at[3]) : "l"(p));
}
__device__ __forceinline__ void fetch(Lane<false>& v, const float* p) { asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v.at[0]) : "l"(p)); }
__device__ __forceinline__ void put(float* p, const Lane<true>& v) {
    asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.at[0]), "f"(v.at[1]), "f"(v.at[2]), "f"(v.at[3]) : "memory");
}
__device__ __forceinline__ void put(float* p, const Lane<false>& v) { asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(p), "f"(v.at[0]) : "memory"); }

template <bool WIDE, int HELD>
__global__ void __launch_bounds__(THREADS)
rms_norm(const float* x, const float* weight, float* out, int C, float eps) {
    constexpr int W = WIDE ? 4 : 1;
    __shared__ float warps[THREADS / 32];
    const size_t row = size_t(blockIdx.x) * C;
    Lane<WIDE> held[HELD];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
        const int at = (i * THREADS + threadIdx.x) * W;
        if (at < C) {
            fetch(held[i], x + row + at);
#pragma unroll
            for (int j = 0; j < W; ++j) sum = fmaf(held[i].at[j], held[i].at[j], sum);
        }
    }
#pragma unroll
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) sum += warps[w];
    const float scale = 1.0f / sqrtf(sum / C + eps);
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
        const int at = (i * THREADS + threadIdx.x) * W;
        if (at < C) {
            Lane<WIDE> w, y;
            fetch(w, weight + at);
#pragma unroll
            for (int j = 0; j < W; ++j) y.at[j] = held[i].at[j] * scale * w.at[j];
            put(out + row + at, y);
        }
    }
}
