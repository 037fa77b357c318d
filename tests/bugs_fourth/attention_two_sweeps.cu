/* evoengine
name: attention_two_sweeps
precision: fp16
summary: 8 threads have a query; one sweep over the keys finds maximum and denominator, a second one weighs the values
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 16)", "B*H"]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 16, KEYS = 32, PARTS = 8, THREADS = ROWS * PARTS;

template <int D, bool CAUSAL>
__global__ void attention(const half* q, const half* k, const half* v, half* out, int S, float scale) {
    constexpr int OWN = D / PARTS;
    __shared__ float queries[ROWS][D + 1];
    __shared__ float keys[KEYS][D + 1];
    __shared__ float weights[ROWS][KEYS];
    const int row = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
    const int first = blockIdx.x * ROWS, place = first + row;
    const size_t base = size_t(blockIdx.y) * S * D;
    for (int i = threadIdx.x; i < ROWS * D; i += THREADS) {
        const int r = i / D, c = i % D;
        queries[r][c] = __half2float(q[base + size_t(min(first + r, S - 1)) * D + c]) * scale;
    }
    auto load_keys = [&](int start) {
        for (int i = threadIdx.x; i < KEYS * D; i += THREADS) {
            const int r = i / D, c = i % D;
            keys[r][c] = __half2float(k[base + size_t(min(start + r, S - 1)) * D + c]);
        }
    };
    auto score = [&](int j) {
        float product = 0.0f;
        for (int d = 0; d < D; ++d) product += queries[row][d] * keys[j][d];
        return product;
    };
    auto is_seen = [&](int key) { return key < S && (!CAUSAL || key <= place); };

    const int end = CAUSAL ? min(S, first + ROWS) : S;
    float top = -1e30f, total = 0.0f;
    for (int start = 0; start < end; start += KEYS) {
        load_keys(start);
        __syncthreads();
        for (int j = part; j < KEYS; j += PARTS) {
            if (!is_seen(start + j)) continue;
            const float own = score(j), high = fmaxf(top, own);
            total = total * expf(top - high) + expf(own - high);
            top = high;
        }
        __syncthreads();
    }
    for (int step = PARTS / 2; step > 0; step /= 2) {
        const float other_top = __shfl_xor_sync(~0u, top, step), other_total = __shfl_xor_sync(~0u, total, step);
        const float high = fmaxf(top, other_top);
        total = total * expf(top - high) + other_total * expf(other_top - high);
        top = high;
    }

    float sum[OWN] = {};
    for (int start = 0; start < end; start += KEYS) {
        load_keys(start);
        __syncthreads();
        for (int j = part; j < KEYS; j += PARTS)
            weights[row][j] = is_seen(start + j) ? expf(score(j) - top) : 0.0f;
        __syncthreads();
        const int count = min(KEYS, S - start);
        for (int j = 0; j < count; ++j)
            for (int c = 0; c < OWN; ++c)
                sum[c] += weights[row][j] * __half2float(v[base + size_t(start + j) * D + c * PARTS + part]);
    }
    if (place >= S) return;
    for (int c = 0; c < OWN; ++c) out[base + size_t(place) * D + c * PARTS + part] = __float2half(sum[c] / total);
}
