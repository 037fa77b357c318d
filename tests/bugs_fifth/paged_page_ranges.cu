/* evoengine
name: paged_page_ranges
precision: fp16
summary: a block takes a range of the pages of a sequence for all query heads of a key head, one page of halves at a time in shared memory; a second launch merges the ranges
tunables:
  RANGES: [3, 2, 5]
let:
  PER_RANGE: ceil_div(MAXP, RANGES)
scratch:
  sums: {dtype: float32, shape: ["B*KV*G", RANGES, D]}
  tops: {dtype: float32, shape: ["B*KV*G", RANGES]}
  totals: {dtype: float32, shape: ["B*KV*G", RANGES]}
launches:
  - kernel: decode<D, G, PAGE>
    grid: [RANGES, KV, B]
    block: [128]
    args: [q, k_pages, v_pages, table, lengths, slopes, sums, tops, totals, MAXP, PER_RANGE, scale]
  - kernel: merge<D>
    grid: ["B*KV*G"]
    block: [D]
    args: [sums, tops, totals, out]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128;

template <int D, int G, int PAGE>
__global__ void __launch_bounds__(THREADS)
decode(const float* q, const float* k_pages, const float* v_pages, const int* table, const int* lengths,
       const float* slopes, float* sums, float* tops, float* totals, int max_pages, int per_range, float scale) {
    constexpr int PITCH = D + 2, OWN = G * D / THREADS + (G * D % THREADS != 0);
    __shared__ half keys[PAGE * PITCH];
    __shared__ half values[PAGE * PITCH];
    __shared__ float queries[G][D];
    __shared__ float weights[G][PAGE];
    __shared__ float shrinks[G];
    const int range = blockIdx.x, kv = blockIdx.y, sequence = blockIdx.z, heads_kv = gridDim.y;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_head = (sequence * heads_kv + kv) * G;
    for (int i = threadIdx.x; i < G * D; i += THREADS) queries[i / D][i % D] = q[size_t(first_head) * D + i] * scale;
    const int length = lengths[sequence];
    const int begin = range * per_range, end = min(begin + per_range, (length + PAGE - 1) / PAGE);

    float sum[OWN] = {}, top = __int_as_float(0xff800000), total = 0.0f;  // top and total: of head `warp`
    for (int i = begin; i < end; ++i) {
        const size_t page = table[size_t(sequence) * max_pages + i];
        for (int e = threadIdx.x; e < PAGE * D; e += THREADS) {
            const int slot = e / D, c = e % D;
            const size_t from = ((page * PAGE + slot) * heads_kv + kv) * D + c;
            keys[slot * PITCH + c] = __float2half(k_pages[from]);
            values[slot * PITCH + c] = __float2half(v_pages[from]);
        }
        __syncthreads();
        if (warp < G) {
            const int place = i * PAGE + lane;
            float score = __int_as_float(0xff800000);
            if (lane < PAGE && place < length) {
                score = slopes[kv * G + warp] * float(place - length + 1);
                for (int c = 0; c < D; ++c) score = fmaf(queries[warp][c], __half2float(keys[lane * PITCH + c]), score);
            }
            float high = score;
            for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
            high = fmaxf(high, top);
            const float weight = expf(score - high), shrink = expf(top - high);
            float added = weight;
            for (int step = 16; step > 0; step /= 2) added += __shfl_xor_sync(~0u, added, step);
            total = total * shrink + added;
            top = high;
            if (lane < PAGE) weights[warp][lane] = weight;
            if (lane == 0) shrinks[warp] = shrink;
        }
        __syncthreads();
        #pragma unroll
        for (int o = 0; o < OWN; ++o) {
            const int e = o * THREADS + threadIdx.x, g = e / D, c = e % D;
            if (e >= G * D) break;
            sum[o] *= shrinks[g];
            for (int slot = 0; slot < PAGE; ++slot)
                sum[o] = fmaf(weights[g][slot], __half2float(values[slot * PITCH + c]), sum[o]);
        }
        __syncthreads();
    }
    const int ranges = gridDim.x;
    for (int o = 0; o < OWN; ++o) {
        const int e = o * THREADS + threadIdx.x;
        if (e < G * D) sums[(size_t(first_head + e / D) * ranges + range) * D + e % D] = sum[o];
    }
    if (warp < G && lane == 0) {
        tops[(first_head + warp) * ranges + range] = top;
        totals[(first_head + warp) * ranges + range] = total;
    }
}

template <int D> __global__ void merge(const float* sums, const float* tops, const float* totals, float* out) {
    const int head = blockIdx.x, c = threadIdx.x;
    float high = tops[head * RANGES];
    for (int r = 1; r < RANGES; ++r) high = fmaxf(high, tops[head * RANGES + r]);
    float sum = 0.0f, total = 0.0f;
    for (int r = 0; r < RANGES; ++r) {
        const float factor = expf(tops[head * RANGES + r] - high);
        sum = fmaf(factor, sums[(size_t(head) * RANGES + r) * D + c], sum);
        total = fmaf(factor, totals[head * RANGES + r], total);
    }
    out[size_t(head) * D + c] = sum / total;
}
