/* evoengine
name: attention_quad_rows
precision: fp16
summary: four lanes share a query and keep every fourth pair of its head; tiles of 32 keys in shared memory, softmax eight keys at a time
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 32)", "B * H"]
    block: [128]
    args: [q, k, v, out, S, scale * 1.4426950408889634]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 32, KEYS = 32, THREADS = 128, STEP = 8;

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
          float scale_log2) {
    constexpr int PAIRS = D / 2, OWN = PAIRS / 4;
    __shared__ __align__(16) half2 keys[KEYS][PAIRS];
    __shared__ __align__(16) half2 values[KEYS][PAIRS];
    const float lowest = __int_as_float(0xff800000);
    const int part = threadIdx.x % 4, row = blockIdx.x * ROWS + threadIdx.x / 4;
    const size_t head = size_t(blockIdx.y) * S * D;

    // a lane has the pairs part, part + 4, part + 8, ... so that the four lanes of a query read side by side
    float2 query[OWN], sum[OWN];
    for (int i = 0; i < OWN; ++i) {
        query[i] = make_float2(0.0f, 0.0f);
        sum[i] = make_float2(0.0f, 0.0f);
        if (row < S) query[i] = __half22float2(reinterpret_cast<const half2*>(q + head + size_t(row) * D)[i * 4 + part]);
    }
    float top = lowest, total = 0.0f;

    const int end = CAUSAL ? min(S, int(blockIdx.x + 1) * ROWS) : S;
    for (int start = 0; start < end; start += KEYS) {
        __syncthreads();
        for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
            const int r = i / (D / 8), c = i % (D / 8);
            uint4 key = make_uint4(0, 0, 0, 0), value = key;
            if (start + r < S) {
                key = *reinterpret_cast<const uint4*>(k + head + size_t(start + r) * D + c * 8);
                value = *reinterpret_cast<const uint4*>(v + head + size_t(start + r) * D + c * 8);
            }
            *reinterpret_cast<uint4*>(&keys[r][c * 4]) = key;
            *reinterpret_cast<uint4*>(&values[r][c * 4]) = value;
        }
        __syncthreads();

        for (int first = 0; first < KEYS; first += STEP) {
            float score[STEP], high = top;
            for (int j = 0; j < STEP; ++j) {
                float dot = 0.0f;
                for (int i = 0; i < OWN; ++i) {
                    const float2 key = __half22float2(keys[first + j][i * 4 + part]);
                    dot = fmaf(query[i].x, key.x, fmaf(query[i].y, key.y, dot));
                }
                dot += __shfl_xor_sync(~0u, dot, 1);
                dot += __shfl_xor_sync(~0u, dot, 2);
                const int place = start + first + j;
                const bool seen = place < S && (!CAUSAL || place <= row);
                score[j] = seen ? dot * scale_log2 : lowest;
                high = fmaxf(high, score[j]);
            }
            if (high > lowest) {
                const float shrink = exp2f(top - high);
                total *= shrink;
                for (int i = 0; i < OWN; ++i) sum[i].x *= shrink, sum[i].y *= shrink;
                for (int j = 0; j < STEP; ++j) {
                    const float weight = exp2f(score[j] - high);
                    total += weight;
                    for (int i = 0; i < OWN; ++i) {
                        const float2 value = __half22float2(values[first + j][i * 4 + part]);
                        sum[i].x = fmaf(weight, value.x, sum[i].x);
                        sum[i].y = fmaf(weight, value.y, sum[i].y);
                    }
                }
                top = high;
            }
        }
    }

    if (row < S) {
        const float inverse = 1.0f / total;
        half2* to = reinterpret_cast<half2*>(out + head + size_t(row) * D);
        for (int i = 0; i < OWN; ++i) to[i * 4 + part] = __floats2half2_rn(sum[i].x * inverse, sum[i].y * inverse);
    }
}
