/* evoengine
name: window_half_tiles
precision: fp16
summary: a block has 16 queries of a head, 8 threads each; tiles of 16 keys, and of values as halves, in shared memory
launches:
  - kernel: attend<D>
    grid: ["ceil_div(S, 16)", "KV*G", B]
    block: [128]
    args: [q, k, v, sink, out, S, KV, G, W, scale]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 16, KEYS = 16, PARTS = 8;

template <int D>
__global__ void attend(const float* q, const float* k, const float* v, const float* sink, float* out, int S, int KV,
                       int G, int W, float scale) {
    constexpr int OWN = D / PARTS;
    __shared__ float keys[KEYS][D + 1];
    __shared__ half values[KEYS][D + 2];
    const int row = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
    const int head = blockIdx.y, first = blockIdx.x * ROWS, place = first + row;
    const int last = min(S, first + ROWS) - 1;
    const size_t own = ((size_t(blockIdx.z) * S + min(place, S - 1)) * KV * G + head) * D;
    float query[OWN], sum[OWN] = {};
    for (int c = 0; c < OWN; ++c) query[c] = q[own + c * PARTS + part] * scale;
    float top = sink[head], total = 1.0f;
    for (int start = max(0, first - W + 1); start <= last; start += KEYS) {
        for (int i = threadIdx.x; i < KEYS * D; i += ROWS * PARTS) {
            const int r = i / D, c = i % D;
            const size_t from = ((size_t(blockIdx.z) * S + min(start + r, S - 1)) * KV + head / G) * D + c;
            keys[r][c] = k[from];
            values[r][c] = __float2half(v[from]);
        }
        __syncthreads();
        for (int j = 0; j < KEYS; ++j) {
            const int key = start + j;
            float score = 0.0f;
            for (int c = 0; c < OWN; ++c) score += query[c] * keys[j][c * PARTS + part];
            for (int step = PARTS / 2; step > 0; step /= 2) score += __shfl_xor_sync(~0u, score, step);
            if (key > place || key + W <= place) continue;
            const float new_top = fmaxf(top, score), shrink = expf(top - new_top), weight = expf(score - new_top);
            total = total * shrink + weight;
            for (int c = 0; c < OWN; ++c) sum[c] = sum[c] * shrink + weight * __half2float(values[j][c * PARTS + part]);
            top = new_top;
        }
        __syncthreads();  // the next tile takes the place of this one
    }
    if (place < S)
        for (int c = 0; c < OWN; ++c) out[own + c * PARTS + part] = sum[c] / total;
}
