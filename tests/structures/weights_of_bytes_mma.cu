/* evoengine
name: weights_of_bytes_mma
precision: fp16
summary: eight columns a block by mma.sync, its warps a part of the sum each; bytes become halves by permutation, 16 of them a load
launches:
  - kernel: multiply
    grid: [N // 8]
    block: [128]
    args: [x, codes, scales, out, N, K]
*/
#include <cuda_fp16.h>

// Two of four bytes as halves: 1152 + b has the bytes (b ^ 128) and 0x64.
__device__ __forceinline__ unsigned halves(unsigned flipped, unsigned selector) {
    const unsigned raised = __byte_perm(flipped, 0x64646464u, selector);
    const __half2 both = __hsub2(*reinterpret_cast<const __half2*>(&raised), __float2half2_rn(1152.0f));
    return *reinterpret_cast<const unsigned*>(&both);
}

__global__ void __launch_bounds__(128)
multiply(const __half* __restrict__ x, const signed char* __restrict__ codes, const float* __restrict__ scales, __half* __restrict__ out, int N, int K) {
    __shared__ float parts[4][16][8];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, group = lane / 4, column = blockIdx.x * 8;
    const int first = warp * (K / 4);
    float sum[4] = {};
#pragma unroll 2
    for (int k = first; k < first + K / 4; k += 64) {
        const int at = k + lane % 4 * 16;
        const int4 four = *reinterpret_cast<const int4*>(codes + size_t(column + group) * K + at);
        const int4* top = reinterpret_cast<const int4*>(x + size_t(group) * K + at);
        const int4* bottom = reinterpret_cast<const int4*>(x + size_t(group + 8) * K + at);
        const int4 upper[2] = {top[0], top[1]}, lower[2] = {bottom[0], bottom[1]};
        const unsigned* words = reinterpret_cast<const unsigned*>(&four);
        const unsigned* a_upper = reinterpret_cast<const unsigned*>(upper);
        const unsigned* a_lower = reinterpret_cast<const unsigned*>(lower);
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const unsigned flipped = words[s] ^ 0x80808080u, b0 = halves(flipped, 0x4140), b1 = halves(flipped, 0x4342);
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                         : "r"(a_upper[2 * s]), "r"(a_lower[2 * s]), "r"(a_upper[2 * s + 1]), "r"(a_lower[2 * s + 1]), "r"(b0), "r"(b1));
        }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) parts[warp][group + e / 2 * 8][lane % 4 * 2 + e % 2] = sum[e];
    __syncthreads();
    const int row = t / 8, own = t % 8;
    const float all = parts[0][row][own] + parts[1][row][own] + parts[2][row][own] + parts[3][row][own];
    out[size_t(row) * N + column + own] = __float2half(all * scales[column + own]);
}
