/* evoengine
name: recurrence_chunk_carry
precision: fp32
summary: a block has 32 channels of a sequence; eight chunks of 16 steps run side by side, their summaries give each its first state, and the last one is carried to the next eight
launches:
  - kernel: recurrence
    grid: ["ceil_div(C, 32)", B]
    block: [32, 8]
    args: [x, gate, start, out, last, T, C]
*/
constexpr int CHUNK = 16, CHUNKS = 8;

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__global__ void __launch_bounds__(32 * CHUNKS)
recurrence(const float* __restrict__ x, const float* __restrict__ gate, const float* __restrict__ start,
           float* __restrict__ out, float* __restrict__ last, int T, int C) {
    __shared__ float kept[CHUNKS][32], added[CHUNKS][32];   // a chunk makes kept * h + added of a state h
    const int channel = blockIdx.x * 32 + threadIdx.x, chunk = threadIdx.y;
    const bool inside = channel < C;
    const size_t base = size_t(blockIdx.y) * T * C + channel;
    float carry = inside ? start[size_t(blockIdx.y) * C + channel] : 0.0f;

    for (int from = 0; from < T; from += CHUNK * CHUNKS) {
        const int begin = from + chunk * CHUNK, end = min(begin + CHUNK, T);
        float product = 1.0f, state = 0.0f;
        if (inside)
            for (int t = begin; t < end; ++t) {
                const float keep = sigmoid(gate[base + size_t(t) * C]);
                state = keep * state + (1.0f - keep) * x[base + size_t(t) * C];
                product *= keep;
            }
        kept[chunk][threadIdx.x] = product;
        added[chunk][threadIdx.x] = state;
        __syncthreads();

        state = carry;
        for (int c = 0; c < chunk; ++c) state = kept[c][threadIdx.x] * state + added[c][threadIdx.x];
        if (inside)
            for (int t = begin; t < end; ++t) {
                const float keep = sigmoid(gate[base + size_t(t) * C]);
                state = keep * state + (1.0f - keep) * x[base + size_t(t) * C];
                out[base + size_t(t) * C] = state;
            }
        for (int c = 0; c < CHUNKS; ++c) carry = kept[c][threadIdx.x] * carry + added[c][threadIdx.x];
        __syncthreads();   // before the summaries of the next chunks
    }
    if (inside && chunk == 0) last[size_t(blockIdx.y) * C + channel] = carry;
}
