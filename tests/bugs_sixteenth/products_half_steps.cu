/* evoengine
name: products_half_steps
precision: fp16
summary: a warp has a row and scans 32 places at a time; what one step hands to the next is rounded to half precision, and so are the results
launches:
  - kernel: scan_rows
    grid: ["ceil_div(N, 2)"]
    block: [64]
    args: [x, marks, out, N, L]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(64)
scan_rows(const float* __restrict__ x, const unsigned char* __restrict__ marks, float* __restrict__ out, int N, int L) {
    const int row = blockIdx.x * 2 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const size_t base = size_t(row) * L;
    float carry = 1.0f;
    for (int start = 0; start < L; start += 32) {
        const int place = start + lane;
        float product = place < L ? x[base + place] : 1.0f;
        const unsigned marked = __ballot_sync(0xffffffffu, place < L && marks[base + place]);
        const unsigned own = marked & (0xffffffffu >> (31 - lane));   // marks at this place and to its left
        const int begin = own == 0u ? 0 : 31 - __clz(own);
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const float below = __shfl_up_sync(0xffffffffu, product, distance);
            if (lane - distance >= begin) product *= below;
        }
        if (own == 0u) product *= carry;
        const float result = __half2float(__float2half(product));
        if (place < L) out[base + place] = result;
        carry = __shfl_sync(0xffffffffu, result, 31);
    }
}
