/* evoengine
name: decode_octet_keys
precision: fp16
summary: a block has a head of a sequence; eight lanes share a key, sixteen keys at a time, each with maximum, total and sums of its own, which meet in shared memory
launches:
  - kernel: decode
    grid: [H, B]
    block: [128]
    args: [q, k, v, slopes, lengths, out, T, scale]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, D = 64, OCTET = 8, TEAMS = THREADS / OCTET;
constexpr float LOG2_E = 1.44269504f;

__device__ __forceinline__ void unpack(float (&to)[8], uint4 packed) {
    const __half2* pairs = reinterpret_cast<const __half2*>(&packed);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const float2 pair = __half22float2(pairs[j]);
        to[j * 2] = pair.x;
        to[j * 2 + 1] = pair.y;
    }
}

__global__ void __launch_bounds__(THREADS)
decode(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       const float* __restrict__ slopes, const int* __restrict__ lengths, __half* __restrict__ out, int T, float scale) {
    __shared__ float tops[TEAMS], totals[TEAMS], sums[TEAMS][D + 1];
    const int head = blockIdx.x, sequence = blockIdx.y, part = threadIdx.x % OCTET, team = threadIdx.x / OCTET;
    const size_t item = size_t(sequence) * gridDim.x + head;
    const uint4* keys = reinterpret_cast<const uint4*>(k + item * T * D);
    const uint4* values = reinterpret_cast<const uint4*>(v + item * T * D);
    const int length = lengths[sequence];
    const float slope = slopes[head] * LOG2_E, factor = scale * LOG2_E;

    float query[8], sum[8] = {}, top = -1e30f, total = 0.0f;
    unpack(query, reinterpret_cast<const uint4*>(q + item * D)[part]);
    for (int start = 0; start < length; start += TEAMS) {
        const int place = start + team;
        float score = 0.0f, row[8];
        if (place < length) {
            unpack(row, keys[size_t(place) * OCTET + part]);
#pragma unroll
            for (int j = 0; j < 8; ++j) score = fmaf(query[j], row[j], score);
        }
#pragma unroll
        for (int mask = OCTET / 2; mask > 0; mask /= 2) score += __shfl_xor_sync(0xffffffffu, score, mask);
        if (place >= length) continue;
        score = score * factor - slope * (length - 1 - place);
        const float peak = fmaxf(top, score), fade = exp2f(top - peak), power = exp2f(score - peak);
        top = peak;
        total = total * fade + power;
        unpack(row, values[size_t(place) * OCTET + part]);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[j] = fmaf(power, row[j], sum[j] * fade);
    }

    if (part == 0) {
        tops[team] = top;
        totals[team] = total;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[team][part * 8 + j] = sum[j];
    __syncthreads();
    if (threadIdx.x >= D) return;
    float highest = tops[0], whole = 0.0f, result = 0.0f;
#pragma unroll
    for (int t = 1; t < TEAMS; ++t) highest = fmaxf(highest, tops[t]);
#pragma unroll
    for (int t = 0; t < TEAMS; ++t) {
        const float share = exp2f(tops[t] - highest);
        whole += totals[t] * share;
        result = fmaf(sums[t][threadIdx.x], share, result);
    }
    out[item * D + threadIdx.x] = __float2half(result / whole);
}
