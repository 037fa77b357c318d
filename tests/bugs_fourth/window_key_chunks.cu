/* evoengine
name: window_key_chunks
precision: fp32
summary: a warp sums a chunk of 32 keys of a window for one query, a second launch merges the chunks and the sink
let:
  CHUNKS: ceil_div(W, 32)
scratch:
  tops: {shape: [B*S*KV*G, CHUNKS], dtype: float32}
  totals: {shape: [B*S*KV*G, CHUNKS], dtype: float32}
  sums: {shape: [B*S*KV*G, CHUNKS, D], dtype: float32}
launches:
  - kernel: sum_chunks<D>
    grid: [CHUNKS, "B*S", KV]
    block: [32, G]
    args: [q, k, v, tops, totals, sums, S, W, scale]
  - kernel: merge<D>
    grid: ["B*S"]
    block: [D]
    args: [tops, totals, sums, sink, out, S, "KV*G", W, CHUNKS]
*/
template <int D>
__global__ void sum_chunks(const float* q, const float* k, const float* v, float* tops, float* totals, float* sums,
                           int S, int W, float scale) {
    constexpr int PER_LANE = D / 32;
    const int lane = threadIdx.x, batch = blockIdx.y / S, place = blockIdx.y % S;
    const int KV = gridDim.z, head = blockIdx.z * blockDim.y + threadIdx.y;
    const size_t line = size_t(blockIdx.y) * KV * blockDim.y + head;
    const int start = max(0, place - W + 1) + blockIdx.x * 32, key = start + lane;
    if (start > place) return;
    const bool seen = key <= place;
    const float* query = q + line * D;
    const float* key_row = k + ((size_t(batch) * S + (seen ? key : start)) * KV + blockIdx.z) * D;
    float score = 0.0f;
    for (int d = 0; d < D; ++d) score += query[d] * key_row[d];
    score = seen ? score * scale : __int_as_float(0xff800000);
    float top = score;
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    const float weight = expf(score - top);
    float total = weight;
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    float sum[PER_LANE] = {};
    const int count = min(32, place - start + 1);
    for (int j = 0; j < count; ++j) {
        const float one = __shfl_sync(~0u, weight, j);
        const float* value_row = v + ((size_t(batch) * S + start + j) * KV + blockIdx.z) * D;
        for (int c = 0; c < PER_LANE; ++c) sum[c] += one * value_row[c * 32 + lane];
    }
    const size_t chunk = line * gridDim.x + blockIdx.x;
    if (lane == 0) {
        tops[chunk] = top;
        totals[chunk] = total;
    }
    for (int c = 0; c < PER_LANE; ++c) sums[chunk * D + c * 32 + lane] = sum[c];
}

template <int D>
__global__ void merge(const float* tops, const float* totals, const float* sums, const float* sink, float* out, int S,
                      int heads, int W, int chunks) {
    const int place = blockIdx.x % S, column = threadIdx.x;
    const int seen = min(place + 1, W), used = (seen + 31) / 32;  // later chunks were not written
    for (int head = 0; head < heads; ++head) {
        const size_t line = size_t(blockIdx.x) * heads + head, begin = line * chunks;
        float highest = sink[head];
        for (int i = 0; i < used; ++i) highest = fmaxf(highest, tops[begin + i]);
        float denominator = expf(sink[head] - highest), numerator = 0.0f;
        for (int i = 0; i < used; ++i) {
            const float factor = expf(tops[begin + i] - highest);
            denominator += totals[begin + i] * factor;
            numerator += sums[(begin + i) * D + column] * factor;
        }
        out[line * D + column] = numerator / denominator;
    }
}
