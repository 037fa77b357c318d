/* evoengine
name: attention_octet_rows
precision: fp16
summary: eight lanes share a query; each scores four keys of a tile of 32 and has an eighth of the columns, weights go round the eight lanes by shuffles
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 16)", H, B]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, QUERIES = 16, KEYS = 32, OCTET = 8, OWN = KEYS / OCTET;

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int S, float scale) {
    constexpr int PAIRS = D / 2;
    __shared__ float2 queries[QUERIES][PAIRS + 1];
    __shared__ __half2 keys[KEYS][PAIRS + 1], values[KEYS][PAIRS];
    const int lane = threadIdx.x % OCTET, own = threadIdx.x / OCTET, first = blockIdx.x * QUERIES;
    const size_t base = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * D;
    const __half2* key_pairs = reinterpret_cast<const __half2*>(k + base);
    const __half2* value_pairs = reinterpret_cast<const __half2*>(v + base);
    const float factor = scale * 1.44269504f;   // powers of two below

    for (int i = threadIdx.x; i < QUERIES * PAIRS; i += THREADS) {
        const int r = i / PAIRS, c = i % PAIRS;
        float2 pair = make_float2(0.0f, 0.0f);
        if (first + r < S) pair = __half22float2(reinterpret_cast<const __half2*>(q + base)[size_t(first + r) * PAIRS + c]);
        queries[r][c] = make_float2(pair.x * factor, pair.y * factor);
    }

    float sum[D / OCTET] = {}, top = -1e30f, total = 0.0f;
    const int end = CAUSAL ? min(S, first + QUERIES) : S;
    for (int start = 0; start < end; start += KEYS) {
        __syncthreads();   // the tile before has been used
        for (int i = threadIdx.x; i < KEYS * PAIRS; i += THREADS) {
            const int r = i / PAIRS, c = i % PAIRS;
            const bool inside = start + r < S;
            const __half2 zero = __float2half2_rn(0.0f);
            keys[r][c] = inside ? key_pairs[size_t(start + r) * PAIRS + c] : zero;
            values[r][c] = inside ? value_pairs[size_t(start + r) * PAIRS + c] : zero;
        }
        __syncthreads();

        float score[OWN] = {}, peak = top;
        for (int c = 0; c < PAIRS; ++c) {
            const float2 query = queries[own][c];
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const float2 key = __half22float2(keys[i * OCTET + lane][c]);
                score[i] = fmaf(query.x, key.x, fmaf(query.y, key.y, score[i]));
            }
        }
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const int place = start + i * OCTET + lane;
            if (place >= S || (CAUSAL && place > first + own)) score[i] = -INFINITY;
            peak = fmaxf(peak, score[i]);
        }
#pragma unroll
        for (int mask = OCTET / 2; mask > 0; mask /= 2) peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, mask));
        const float fade = exp2f(top - peak);
        top = peak;
        total *= fade;
#pragma unroll
        for (int c = 0; c < D / OCTET; ++c) sum[c] *= fade;
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const float power = exp2f(score[i] - peak);
            total += power;
#pragma unroll
            for (int j = 0; j < OCTET; ++j) {
                const float weight = __shfl_sync(0xffffffffu, power, j, OCTET);
#pragma unroll
                for (int c = 0; c < PAIRS / OCTET; ++c) {
                    const float2 value = __half22float2(values[i * OCTET + j][c * OCTET + lane]);
                    sum[c * 2] = fmaf(weight, value.x, sum[c * 2]);
                    sum[c * 2 + 1] = fmaf(weight, value.y, sum[c * 2 + 1]);
                }
            }
        }
    }
#pragma unroll
    for (int mask = OCTET / 2; mask > 0; mask /= 2) total += __shfl_xor_sync(0xffffffffu, total, mask);
    if (first + own >= S) return;
    __half2* results = reinterpret_cast<__half2*>(out + base + size_t(first + own) * D);
#pragma unroll
    for (int c = 0; c < PAIRS / OCTET; ++c)
        results[c * OCTET + lane] = __floats2half2_rn(sum[c * 2] / total, sum[c * 2 + 1] / total);
}
