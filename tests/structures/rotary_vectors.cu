/* evoengine
name: rotary_vectors
precision: fp16
summary: a thread turns eight pairs; both halves of a head as vectors of eight, cosines and sines from the cache
launches:
  - kernel: turn
    grid: ["ceil_div(T * H * (D / 16), 256)"]
    block: [256]
    args: [x, cosine, sine, out, T, H, D]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(256)
turn(const __half* __restrict__ x, const float* __restrict__ cosine, const float* __restrict__ sine, __half* __restrict__ out, int T, int H, int D) {
    const int own = blockIdx.x * 256 + threadIdx.x, parts = D / 16;
    if (own >= T * H * parts) return;
    const int part = own % parts, head = own / parts, token = head / H;
    const size_t at = size_t(head) * D + part * 8;
    const int4 of_first = *reinterpret_cast<const int4*>(x + at), of_second = *reinterpret_cast<const int4*>(x + at + D / 2);
    const __half2* first = reinterpret_cast<const __half2*>(&of_first);
    const __half2* second = reinterpret_cast<const __half2*>(&of_second);
    const float4* c = reinterpret_cast<const float4*>(cosine + size_t(token) * (D / 2) + part * 8);
    const float4* s = reinterpret_cast<const float4*>(sine + size_t(token) * (D / 2) + part * 8);
    int4 to_first, to_second;
    __half2* turned_first = reinterpret_cast<__half2*>(&to_first);
    __half2* turned_second = reinterpret_cast<__half2*>(&to_second);
#pragma unroll
    for (int four = 0; four < 2; ++four) {
        const float4 by = c[four], across = s[four];
        const float2 a = __half22float2(first[2 * four]), b = __half22float2(first[2 * four + 1]);
        const float2 p = __half22float2(second[2 * four]), q = __half22float2(second[2 * four + 1]);
        turned_first[2 * four] = __floats2half2_rn(a.x * by.x - p.x * across.x, a.y * by.y - p.y * across.y);
        turned_first[2 * four + 1] = __floats2half2_rn(b.x * by.z - q.x * across.z, b.y * by.w - q.y * across.w);
        turned_second[2 * four] = __floats2half2_rn(p.x * by.x + a.x * across.x, p.y * by.y + a.y * across.y);
        turned_second[2 * four + 1] = __floats2half2_rn(q.x * by.z + b.x * across.z, q.y * by.w + b.y * across.w);
    }
    *reinterpret_cast<int4*>(out + at) = to_first;
    *reinterpret_cast<int4*>(out + at + D / 2) = to_second;
}
