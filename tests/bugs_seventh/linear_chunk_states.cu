/* evoengine
name: linear_chunk_states
precision: fp32
summary: a block has a query head and walks chunks of 16 positions; what came before a chunk is a 32 x 32 state and the sum of its features
launches:
  - kernel: attend
    grid: [HQ, B]
    block: [128]
    args: [q, k, v, out, HQ, HKV, S]
*/
constexpr int D = 32, CHUNK = 16, THREADS = 128;

__device__ __forceinline__ float feature(float x) { return x > 0.0f ? x + 1.0f : expf(x); }

__global__ void __launch_bounds__(THREADS)
attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out,
       int HQ, int HKV, int S) {
    __shared__ float queries[CHUNK][D + 1], keys[CHUNK][D + 1], values[CHUNK][D];
    __shared__ float state[D][D], features[D], weights[CHUNK][CHUNK];
    const int head = blockIdx.x, shared_head = head / (HQ / HKV);
    const size_t from_q = (size_t(blockIdx.y) * HQ + head) * S * D;
    const size_t from_k = (size_t(blockIdx.y) * HKV + shared_head) * S * D;

    for (int i = threadIdx.x; i < D * D; i += THREADS) state[i / D][i % D] = 0.0f;
    if (threadIdx.x < D) features[threadIdx.x] = 0.0f;

    for (int start = 0; start < S; start += CHUNK) {
        for (int i = threadIdx.x; i < CHUNK * D; i += THREADS) {
            const int place = start + i / D, d = i % D;
            const bool inside = place < S;
            queries[i / D][d] = inside ? feature(q[from_q + size_t(place) * D + d]) : 0.0f;
            keys[i / D][d] = inside ? feature(k[from_k + size_t(place) * D + d]) : 0.0f;
            values[i / D][d] = inside ? v[from_k + size_t(place) * D + d] : 0.0f;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK * CHUNK; i += THREADS) {
            const int row = i / CHUNK, key = i % CHUNK;
            float dot = 0.0f;
            for (int d = 0; d < D; ++d) dot += queries[row][d] * keys[key][d];
            weights[row][key] = key <= row ? dot : 0.0f;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK * D; i += THREADS) {
            const int row = i / D, column = i % D;
            float sum = 0.0f, total = 0.0f;
            for (int d = 0; d < D; ++d) {
                sum += queries[row][d] * state[d][column];
                total += queries[row][d] * features[d];
            }
            for (int key = 0; key < CHUNK; ++key) {
                sum += weights[row][key] * values[key][column];
                total += weights[row][key];
            }
            if (start + row < S) out[from_q + size_t(start + row) * D + column] = sum / total;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < D * D; i += THREADS) {
            float sum = 0.0f;
            for (int key = 0; key < CHUNK; ++key) sum += keys[key][i / D] * values[key][i % D];
            state[i / D][i % D] += sum;
        }
        if (threadIdx.x < D) {
            float sum = 0.0f;
            for (int key = 0; key < CHUNK; ++key) sum += keys[key][threadIdx.x];
            features[threadIdx.x] += sum;
        }
        __syncthreads();
    }
}
