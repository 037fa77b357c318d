/* evoengine
name: decode_group_splits
precision: fp32
summary: flash decoding; a block has one split of a sequence for all queries of a key head, a second launch merges the splits
let:
  SPLITS: 4
scratch:
  part_acc: {shape: [B * KV * G, SPLITS, D], dtype: float32}
  part_max: {shape: [B * KV * G, SPLITS], dtype: float32}
  part_sum: {shape: [B * KV * G, SPLITS], dtype: float32}
launches:
  - kernel: decode_split<D, G>
    grid: [SPLITS, KV, B]
    block: [128]
    args: [q, k, v, lengths, part_acc, part_max, part_sum, T, scale, cap]
  - kernel: merge_splits<D>
    grid: [B * KV * G]
    block: [D]
    args: [part_acc, part_max, part_sum, out, lse, SPLITS]
*/
constexpr int BLOCK = 128;
constexpr int TILE_KEYS = 32;

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
    return x;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffff, x, offset);
    return x;
}

template <int D, int G>
__global__ void __launch_bounds__(BLOCK)
decode_split(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
             const int* __restrict__ lengths, float* __restrict__ part_acc, float* __restrict__ part_max,
             float* __restrict__ part_sum, int T, float scale, float cap) {
    constexpr int HEADS_AT_ONCE = BLOCK / D;
    constexpr int OWN = (G + HEADS_AT_ONCE - 1) / HEADS_AT_ONCE;
    __shared__ float s_query[G][D];
    __shared__ float s_prob[G][TILE_KEYS];
    __shared__ float s_alpha[G];

    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const int split = blockIdx.x, kv_head = blockIdx.y, batch = blockIdx.z;
    const int num_splits = gridDim.x, num_kv = gridDim.y;
    const int first_head = (batch * num_kv + kv_head) * G;

    // Each split gets an equal share of the keys that this sequence really has.
    const int length = lengths[batch];
    const int per_split = (length + num_splits - 1) / num_splits;
    const int begin = split * per_split;
    const int end = min(begin + per_split, length);

    for (int i = tid; i < G * D; i += BLOCK) s_query[i / D][i % D] = q[(size_t)first_head * D + i] * scale;
    __syncthreads();

    float acc[OWN] = {};
    float running_max = -INFINITY, running_sum = 0.0f;   // of head `warp`, in every lane
    const int my_dim = tid % D, my_head = tid / D;

    for (int start = begin; start < end; start += TILE_KEYS) {
        // Scores: one thread per (head, key).
        for (int i = tid; i < G * TILE_KEYS; i += BLOCK) {
            const int g = i / TILE_KEYS, j = i % TILE_KEYS;
            float score = -INFINITY;
            if (start + j < end) {
                const float* key = k + (((size_t)batch * T + start + j) * num_kv + kv_head) * D;
                float dot = 0.0f;
                for (int d = 0; d < D; d += 4) {
                    const float4 four = *reinterpret_cast<const float4*>(key + d);
                    dot += s_query[g][d] * four.x + s_query[g][d + 1] * four.y;
                    dot += s_query[g][d + 2] * four.z + s_query[g][d + 3] * four.w;
                }
                score = cap * tanhf(dot / cap);
            }
            s_prob[g][j] = score;
        }
        __syncthreads();

        // Softmax: one warp per head.
        if (warp < G) {
            const float score = s_prob[warp][lane];
            const float new_max = fmaxf(running_max, warp_max(score));
            const float alpha = expf(running_max - new_max);
            const float prob = expf(score - new_max);
            s_prob[warp][lane] = prob;
            running_sum = running_sum * alpha + warp_sum(prob);
            running_max = new_max;
            if (lane == 0) s_alpha[warp] = alpha;
        }
        __syncthreads();

        // Values: one thread per (head, column).
        const int tile_keys = min(TILE_KEYS, end - start);
        for (int o = 0; o < OWN; ++o) {
            const int g = o * HEADS_AT_ONCE + my_head;
            if (g >= G) break;
            acc[o] *= s_alpha[g];
            for (int j = 0; j < tile_keys; ++j)
                acc[o] += s_prob[g][j] * v[(((size_t)batch * T + start + j) * num_kv + kv_head) * D + my_dim];
        }
        __syncthreads();
    }

    for (int o = 0; o < OWN; ++o) {
        const int g = o * HEADS_AT_ONCE + my_head;
        if (g < G) part_acc[((size_t)(first_head + g) * num_splits + split) * D + my_dim] = acc[o];
    }
    if (warp < G && lane == 0) {
        part_max[(first_head + warp) * num_splits + split] = running_max;
        part_sum[(first_head + warp) * num_splits + split] = running_sum;
    }
}

template <int D>
__global__ void merge_splits(const float* __restrict__ part_acc, const float* __restrict__ part_max,
                             const float* __restrict__ part_sum, float* __restrict__ out, float* __restrict__ lse,
                             int num_splits) {
    const int head = blockIdx.x, d = threadIdx.x;
    float global_max = -INFINITY;
    for (int s = 0; s < num_splits; ++s) global_max = fmaxf(global_max, part_max[head * num_splits + s]);
    float total = 0.0f, result = 0.0f;
    for (int s = 0; s < num_splits; ++s) {
        const float weight = expf(part_max[head * num_splits + s] - global_max);
        total += weight * part_sum[head * num_splits + s];
        result += weight * part_acc[((size_t)head * num_splits + s) * D + d];
    }
    out[(size_t)head * D + d] = result / total;
    if (d == 0) lse[head] = global_max + logf(total);
}
