/* evoengine
name: lookup_four_rows_ahead
precision: fp16
summary: a thread loads 16 bytes of four rows that indices name before it uses the first, and adds them to positions as packed halves
launches:
  - kernel: lookup
    grid: ["ceil_div(ceil_div(T, 4) * (D // 8), 256)"]
    block: [256]
    args: [table, tokens, positions, out, T, D, S]
*/
#include <cuda_fp16.h>

union Pack { uint4 bits; __half2 pair[4]; };

__global__ void __launch_bounds__(256)
lookup(const __half* __restrict__ table, const int* __restrict__ tokens, const __half* __restrict__ positions,
       __half* __restrict__ out, int T, int D, int S) {
    const int vectors = D / 8, quarter = (T + 3) / 4;
    const int at = blockIdx.x * 256 + threadIdx.x;
    const int t = at / vectors, part = at % vectors;
    if (t >= quarter) return;
    Pack row[4], place[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (t + i * quarter < T) {
            row[i].bits = reinterpret_cast<const uint4*>(table + size_t(tokens[t + i * quarter]) * D)[part];
            place[i].bits = reinterpret_cast<const uint4*>(positions + size_t((t + i * quarter) % S) * D)[part];
        }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (t + i * quarter < T) {
#pragma unroll
            for (int j = 0; j < 4; ++j) row[i].pair[j] = __hadd2(row[i].pair[j], place[i].pair[j]);
            reinterpret_cast<uint4*>(out + size_t(t + i * quarter) * D)[part] = row[i].bits;
        }
}
