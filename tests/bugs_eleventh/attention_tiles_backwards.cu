/* evoengine
name: attention_tiles_backwards
precision: fp16
summary: 4 x 4 scores a thread in single precision, tiles of 32 keys from the last to the first
let:
  SHARED: 4*(2*D*36 + 32*D + 32*36)
require:
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: attend<D, causal>
    grid: [H, "ceil_div(S, 32)", B]
    block: [64]
    shared: SHARED
    args: [q, k, v, out, H, S, scale]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 32, KEYS = 32, PITCH = 36, THREADS = 64;

// Over the eight threads that share four rows.
__device__ __forceinline__ float largest_of_eight(float x) {
    for (int step = 1; step < 8; step *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}
__device__ __forceinline__ float sum_of_eight(float x) {
    for (int step = 4; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out,
       int H, int S, float scale) {
    constexpr int COLUMNS = D / 8;   // of the output, for each of a thread's rows
    extern __shared__ __align__(16) float memory[];
    float* queries = memory;                   // [D][PITCH], columns by rows
    float* keys = queries + D * PITCH;         // [D][PITCH]
    float* values = keys + D * PITCH;          // [KEYS][D]
    float* weights = values + KEYS * D;        // [KEYS][PITCH], keys by rows

    const size_t head = (size_t(blockIdx.z) * H + blockIdx.x) * S * D;
    const int first = blockIdx.y * ROWS, tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    const int visible = CAUSAL ? min(S, first + ROWS) : S;

    for (int i = threadIdx.x; i < ROWS * D / 2; i += THREADS) {
        const int r = i / (D / 2), c = i % (D / 2) * 2;
        float2 pair = make_float2(0.0f, 0.0f);
        if (first + r < S) pair = __half22float2(*reinterpret_cast<const half2*>(q + head + size_t(first + r) * D + c));
        queries[c * PITCH + r] = pair.x * scale;
        queries[(c + 1) * PITCH + r] = pair.y * scale;
    }

    float sum[4][COLUMNS] = {}, top[4], total[4] = {};
    for (int i = 0; i < 4; ++i) top[i] = -INFINITY;

    // The last tile of a causal block holds its diagonal, so that every row has met a key from the first step on.
    for (int from = (visible - 1) / KEYS * KEYS; from >= 0; from -= KEYS) {
        for (int i = threadIdx.x; i < KEYS * D / 2; i += THREADS) {
            const int r = i / (D / 2), c = i % (D / 2) * 2;
            float2 key = make_float2(0.0f, 0.0f), value = key;
            if (from + r < S) {
                key = __half22float2(*reinterpret_cast<const half2*>(k + head + size_t(from + r) * D + c));
                value = __half22float2(*reinterpret_cast<const half2*>(v + head + size_t(from + r) * D + c));
            }
            keys[c * PITCH + r] = key.x;
            keys[(c + 1) * PITCH + r] = key.y;
            *reinterpret_cast<float2*>(values + r * D + c) = value;
        }
        __syncthreads();

        float score[4][4] = {};
        for (int d = 0; d < D; ++d) {
            const float4 x = *reinterpret_cast<const float4*>(queries + d * PITCH + ty * 4);
            const float4 y = *reinterpret_cast<const float4*>(keys + d * PITCH + tx * 4);
            const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) score[i][j] += xs[i] * ys[j];
        }

        for (int i = 0; i < 4; ++i) {
            float high = top[i];
            for (int j = 0; j < 4; ++j) {
                const int key = from + tx * 4 + j;
                if (key >= S || (CAUSAL && key > first + ty * 4 + i)) score[i][j] = -INFINITY;
                high = fmaxf(high, score[i][j]);
            }
            high = largest_of_eight(high);
            const float earlier = __expf(top[i] - high);
            top[i] = high;
            float added = 0.0f;
            for (int j = 0; j < 4; ++j) {
                const float weight = __expf(score[i][j] - high);
                added += weight;
                weights[(tx * 4 + j) * PITCH + ty * 4 + i] = weight;
            }
            total[i] = total[i] * earlier + sum_of_eight(added);
            for (int c = 0; c < COLUMNS; ++c) sum[i][c] *= earlier;
        }
        __syncthreads();

        for (int key = 0; key < KEYS; ++key) {
            const float4 w = *reinterpret_cast<const float4*>(weights + key * PITCH + ty * 4);
            for (int c = 0; c < COLUMNS; ++c) {
                const float value = values[key * D + c * 8 + tx];
                sum[0][c] += w.x * value;
                sum[1][c] += w.y * value;
                sum[2][c] += w.z * value;
                sum[3][c] += w.w * value;
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < 4; ++i) {
        const int query = first + ty * 4 + i;
        if (query >= S) continue;
        const float inverse = 1.0f / total[i];
        for (int c = 0; c < COLUMNS; ++c) out[head + size_t(query) * D + c * 8 + tx] = __float2half(sum[i][c] * inverse);
    }
}
