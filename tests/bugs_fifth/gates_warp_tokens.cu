/* evoengine
name: gates_warp_tokens
precision: fp32
summary: a warp has a token and takes its largest logits one by one; shares are added up in shared memory, then by atomics
let:
  OWN: ceil_div(E, 32)
launches:
  - kernel: route<OWN>
    grid: ["ceil_div(T, 8)"]
    block: [256]
    args: [logits, gates, ids, share, T, E, K]
*/
constexpr int TOKENS = 8, THREADS = 256, MOST = 8;

template <int OWN>
__global__ void __launch_bounds__(THREADS)
route(const float* __restrict__ logits, float* __restrict__ gates, int* __restrict__ ids, float* share, int T, int E, int K) {
    __shared__ float shares[OWN * 32];
    const int lane = threadIdx.x % 32, token = blockIdx.x * TOKENS + threadIdx.x / 32;
    const float lowest = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < E; i += THREADS) shares[i] = 0.0f;
    __syncthreads();
    if (token < T) {
        float own[OWN];  // of experts lane, lane + 32, ...
        #pragma unroll
        for (int j = 0; j < OWN; ++j) own[j] = j * 32 + lane < E ? logits[size_t(token) * E + j * 32 + lane] : lowest;

        float high = own[0];
        #pragma unroll
        for (int j = 1; j < OWN; ++j) high = fmaxf(high, own[j]);
        for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
        float weights[OWN], total = 0.0f;
        #pragma unroll
        for (int j = 0; j < OWN; ++j) total += weights[j] = expf(own[j] - high);
        for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
        #pragma unroll
        for (int j = 0; j < OWN; ++j)
            if (j * 32 + lane < E) atomicAdd(&shares[j * 32 + lane], weights[j] / (total * T));

        float chosen = 0.0f, chosen_total = 0.0f;  // lane k keeps the weight of choice k
        for (int k = 0; k < K; ++k) {
            float best = lowest;
            int best_id = E;
            #pragma unroll
            for (int j = 0; j < OWN; ++j)
                if (own[j] > best) best = own[j], best_id = j * 32 + lane;
            for (int step = 16; step > 0; step /= 2) {
                const float other = __shfl_xor_sync(~0u, best, step);
                const int other_id = __shfl_xor_sync(~0u, best_id, step);
                if (other > best || (other == best && other_id < best_id)) best = other, best_id = other_id;
            }
            #pragma unroll
            for (int j = 0; j < OWN; ++j)
                if (best_id == j * 32 + lane) own[j] = lowest;
            const float weight = expf(best - high);
            chosen_total += weight;
            if (lane == k) {
                chosen = weight;
                ids[size_t(token) * K + k] = best_id;
            }
        }
        if (lane < K) gates[size_t(token) * K + lane] = chosen / chosen_total;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < E; i += THREADS) atomicAdd(share + i, shares[i]);
}
