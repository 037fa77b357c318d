/* evoengine
name: gates_thread_tokens
precision: fp16
summary: a thread has a token, whose logits lie in shared memory; it inserts them into a sorted list, and rounds its gates to half precision; a second launch adds the shares up
let:
  BLOCKS: ceil_div(T, 32)
  PITCH: E + 1 if E % 2 == 0 else E
scratch:
  partial: {dtype: float32, shape: [BLOCKS, E]}
launches:
  - kernel: route<K>
    grid: [BLOCKS]
    block: [32]
    shared: 4 * 32 * PITCH
    args: [logits, gates, ids, partial, T, E, PITCH]
  - kernel: add_shares
    grid: ["ceil_div(E, 64)"]
    block: [64]
    args: [partial, share, BLOCKS, T, E]
*/
#include <cuda_fp16.h>

constexpr int TOKENS = 32;

template <int K>
__global__ void __launch_bounds__(TOKENS)
route(const float* __restrict__ logits, float* __restrict__ gates, int* __restrict__ ids, float* __restrict__ partial, int T,
      int E, int pitch) {
    extern __shared__ float tile[];  // [TOKENS][pitch], an odd pitch
    const int first = blockIdx.x * TOKENS, tokens = min(TOKENS, T - first);
    for (int i = threadIdx.x; i < tokens * E; i += TOKENS) tile[i / E * pitch + i % E] = logits[size_t(first) * E + i];
    __syncwarp();
    if (threadIdx.x < tokens) {
        float* own = tile + threadIdx.x * pitch;
        float best[K];
        int best_id[K];
        for (int k = 0; k < K; ++k) best[k] = __int_as_float(0xff800000), best_id[k] = E;
        for (int e = 0; e < E; ++e) {
            float value = own[e];
            int id = e;
            #pragma unroll
            for (int k = 0; k < K; ++k) {
                // an earlier expert stays before an equal one
                if (value > best[k]) {
                    const float moved = best[k];
                    const int moved_id = best_id[k];
                    best[k] = value, best_id[k] = id;
                    value = moved, id = moved_id;
                }
            }
        }
        float chosen = 0.0f, total = 0.0f;
        for (int k = 0; k < K; ++k) chosen += expf(best[k] - best[0]);
        const size_t at = size_t(first + threadIdx.x) * K;
        for (int k = 0; k < K; ++k) {
            gates[at + k] = __half2float(__float2half(expf(best[k] - best[0]) / chosen));
            ids[at + k] = best_id[k];
        }
        for (int e = 0; e < E; ++e) total += own[e] = expf(own[e] - best[0]);
        for (int e = 0; e < E; ++e) own[e] /= total;
    }
    __syncwarp();
    for (int e = threadIdx.x; e < E; e += TOKENS) {
        float sum = 0.0f;
        for (int t = 0; t < tokens; ++t) sum += tile[t * pitch + e];
        partial[size_t(blockIdx.x) * E + e] = sum;
    }
}

__global__ void add_shares(const float* partial, float* share, int blocks, int T, int E) {
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= E) return;
    float sum = 0.0f;
    for (int b = 0; b < blocks; ++b) sum += partial[size_t(b) * E + e];
    share[e] = sum / T;
}
