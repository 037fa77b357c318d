/* evoengine
name: attention_queue_splits
precision: fp16
summary: persistent blocks take four queries and a part of the keys from a queue; a lane scores a key; a second launch merges the parts by their logarithmic sums
tunables:
  SPLITS: [2, 3, 4]
let:
  CHUNK: ceil_div(S, SPLITS)
  TILES: ceil_div(S, 4)
scratch:
  queue: {dtype: int32, shape: [1], init: 0}
  parts: {dtype: float32, shape: ["B*H*S", SPLITS, D]}
  logs: {dtype: float32, shape: ["B*H*S", SPLITS]}
launches:
  - kernel: attend<D, causal>
    grid: ["min(SM_COUNT, B*H*TILES*SPLITS)"]
    block: [128]
    args: [q, k, v, queue, parts, logs, S, TILES, CHUNK, B*H*TILES*SPLITS, scale]
  - kernel: merge<D>
    grid: ["ceil_div(B*H*S, 4)"]
    block: [128]
    args: [parts, logs, out, B*H*S]
*/
#include <cuda_fp16.h>

constexpr int KEYS = 32, QUERIES = 4, THREADS = 128;

__device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float warp_max(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const half* q, const half* k, const half* v, int* queue, float* parts, float* logs, int S, int tiles, int chunk,
       int items, float scale) {
    constexpr int PITCH = D / 2 + 1;  // words; odd, so that 32 keys lie in 32 banks
    constexpr int OWN = D / 32;
    __shared__ half2 keys[KEYS * PITCH];
    __shared__ half2 queries[QUERIES][D / 2];
    __shared__ int taken;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(queue, 1);
        __syncthreads();
        const int item = taken;
        if (item >= items) return;
        const int split = item % SPLITS, tile = item / SPLITS % tiles, head = item / (SPLITS * tiles);
        const size_t base = size_t(head) * S * D;
        const int row = tile * QUERIES + warp;
        const half2* own = reinterpret_cast<const half2*>(q + base + size_t(min(row, S - 1)) * D);
        for (int i = lane; i < D / 2; i += 32) queries[warp][i] = own[i];

        const int begin = split * chunk, last_row = min(S, tile * QUERIES + QUERIES);
        const int end = min(begin + chunk, CAUSAL ? last_row : S);
        float sum[OWN] = {}, total = 0.0f, top = lowest();
        for (int start = begin; start < end; start += KEYS) {
            for (int i = threadIdx.x; i < KEYS * D / 2; i += THREADS) {
                const int r = i / (D / 2), c = i % (D / 2);
                keys[r * PITCH + c] = reinterpret_cast<const half2*>(k + base + size_t(min(start + r, S - 1)) * D)[c];
            }
            __syncthreads();
            float dot = 0.0f;
            for (int i = 0; i < D / 2; ++i) {
                const float2 x = __half22float2(queries[warp][i]), y = __half22float2(keys[lane * PITCH + i]);
                dot = fmaf(x.x, y.x, fmaf(x.y, y.y, dot));
            }
            const int key = start + lane;
            const bool seen = key < end && (!CAUSAL || key <= row);
            const float score = seen ? dot * scale : lowest();
            const float high = fmaxf(top, warp_max(score));
            if (high > lowest()) {
                const float shrink = __expf(top - high), weight = __expf(score - high);
                total = total * shrink + warp_sum(weight);
                for (int c = 0; c < OWN; ++c) sum[c] *= shrink;
                for (int j = 0; j < min(KEYS, end - start); ++j) {
                    const float one = __shfl_sync(~0u, weight, j);
                    const half* from = v + base + size_t(start + j) * D + lane * OWN;
                    for (int c = 0; c < OWN; ++c) sum[c] = fmaf(one, __half2float(from[c]), sum[c]);
                }
                top = high;
            }
            __syncthreads();
        }
        if (row < S) {
            const size_t part = (size_t(head) * S + row) * SPLITS + split;
            const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
            for (int c = 0; c < OWN; ++c) parts[part * D + lane * OWN + c] = sum[c] * inverse;
            if (lane == 0) logs[part] = total > 0.0f ? top + logf(total) : lowest();
        }
        __syncthreads();
    }
}

template <int D>
__global__ void __launch_bounds__(THREADS) merge(const float* parts, const float* logs, half* out, int rows) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float high = lowest(), total = 0.0f;
    for (int s = 0; s < SPLITS; ++s) high = fmaxf(high, logs[size_t(row) * SPLITS + s]);
    for (int s = 0; s < SPLITS; ++s) total += __expf(logs[size_t(row) * SPLITS + s] - high);
    for (int c = lane; c < D; c += 32) {
        float sum = 0.0f;
        for (int s = 0; s < SPLITS; ++s)
            sum += __expf(logs[size_t(row) * SPLITS + s] - high) * parts[(size_t(row) * SPLITS + s) * D + c];
        out[size_t(row) * D + c] = __float2half(sum / total);
    }
}
