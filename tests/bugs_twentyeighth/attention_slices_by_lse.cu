/* evoengine
name: attention_slices_by_lse
precision: fp16
summary: attention in single precision on register tiles, the keys cut into slices whose normalised results a second launch blends by their log-sum-exp
tunables:
  SPLITS: [3, 2, 4, 1]    # slices of the keys
let:
  CHUNK: round_up(ceil_div(S, SPLITS), 32)
  ROWS: B*H*S
scratch:
  part: {dtype: float32, shape: [SPLITS, B, H, S, D]}
  part_lse: {dtype: float32, shape: [SPLITS, B, H, S]}
launches:
  - kernel: attend_slice<D, causal>
    grid: ["ceil_div(S, 32)", SPLITS, "B*H"]
    block: [128]
    shared: 4*(32*D + 36*D + 32*36) + 2*32*D
    args: [q, k, v, part, part_lse, S, CHUNK, scale]
  - kernel: blend_slices<D>
    grid: ["ceil_div(ROWS, 4)"]
    block: [128]
    args: [part, part_lse, out, ROWS]
*/
#include <cuda_fp16.h>
constexpr int QUERIES = 32, KEYS = 32, THREADS = 128;
constexpr int PITCH = KEYS + 4;                  // of keys that stand in columns, and of weights; rows of whole float4
constexpr float LOG2_E = 1.4426950408889634f;

// Eight lanes side by side own the same two rows.
__device__ __forceinline__ float octet_max(float x) {
    for (int step = 4; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}
__device__ __forceinline__ float octet_sum(float x) {
    for (int step = 4; step > 0; step >>= 1) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

struct alignas(16) Eight { __half2 pair[4]; };
__device__ __forceinline__ Eight load_eight(const __half* from, bool inside) { return inside ? *reinterpret_cast<const Eight*>(from) : Eight{}; }

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend_slice(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
             float* __restrict__ part, float* __restrict__ part_lse, int S, int chunk, float scale) {
    extern __shared__ __align__(16) float shared[];
    float* queries = shared;                               // [QUERIES][D], scaled
    float* keys_turned = queries + QUERIES * D;            // [D][PITCH]
    float* weights = keys_turned + D * PITCH;              // [QUERIES][PITCH]
    __half* values = reinterpret_cast<__half*>(weights + QUERIES * PITCH);   // [KEYS][D]
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;  // keys 4 * tx and on, rows 2 * ty and the next
    const int block_row = blockIdx.x * QUERIES, slice = blockIdx.y;
    const size_t head = size_t(blockIdx.z) * S * D;
    const int first = slice * chunk, end = min(first + chunk, CAUSAL ? min(S, block_row + QUERIES) : S);
    for (int i = threadIdx.x; i < QUERIES * D / 8; i += THREADS) {
        const int row = i / (D / 8), d = i % (D / 8) * 8;
        const Eight eight = load_eight(q + head + size_t(block_row + row) * D + d, block_row + row < S);
        for (int j = 0; j < 4; ++j) {
            const float2 two = __half22float2(eight.pair[j]);
            queries[row * D + d + 2 * j] = two.x * (scale * LOG2_E), queries[row * D + d + 2 * j + 1] = two.y * (scale * LOG2_E);
        }
    }
    float run_max[2] = {-INFINITY, -INFINITY}, run_sum[2] = {};
    float2 acc[2][D / 16] = {};                            // columns 16 * c + 2 * tx and the next
    for (int key0 = first; key0 < end; key0 += KEYS) {
        // Neighbouring lanes take neighbouring keys: what they store in one column of keys lies side by side.
        for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
            const int key = i % KEYS, d = i / KEYS * 8;
            const size_t from = head + size_t(key0 + key) * D + d;
            const Eight eight = load_eight(k + from, key0 + key < end);
            for (int j = 0; j < 4; ++j) {
                keys_turned[(d + 2 * j) * PITCH + key] = __low2float(eight.pair[j]);
                keys_turned[(d + 2 * j + 1) * PITCH + key] = __high2float(eight.pair[j]);
            }
            *reinterpret_cast<Eight*>(&values[key * D + d]) = load_eight(v + from, key0 + key < end);
        }
        __syncthreads();
        float score[2][4] = {};
#pragma unroll 8
        for (int d = 0; d < D; ++d) {
            const float4 four = *reinterpret_cast<const float4*>(&keys_turned[d * PITCH + 4 * tx]);
            for (int r = 0; r < 2; ++r) {
                const float x = queries[(2 * ty + r) * D + d];
                score[r][0] += x * four.x, score[r][1] += x * four.y, score[r][2] += x * four.z, score[r][3] += x * four.w;
            }
        }
        for (int r = 0; r < 2; ++r) {
            const int row = block_row + 2 * ty + r;
            float top = run_max[r];
            for (int c = 0; c < 4; ++c) {
                const int key = key0 + 4 * tx + c;
                if (key >= end || (CAUSAL && key > row)) score[r][c] = -INFINITY;
                top = fmaxf(top, score[r][c]);
            }
            top = octet_max(top);
            const float offset = top == -INFINITY ? 0.0f : top, shrink = exp2f(run_max[r] - offset);   // -inf: no key yet
            run_max[r] = top;
            float sum = 0.0f;
            for (int c = 0; c < 4; ++c) {
                const float weight = exp2f(score[r][c] - offset);
                sum += weight;
                weights[(2 * ty + r) * PITCH + 4 * tx + c] = weight;
            }
            run_sum[r] = run_sum[r] * shrink + octet_sum(sum);
            for (int c = 0; c < D / 16; ++c) acc[r][c].x *= shrink, acc[r][c].y *= shrink;
        }
        __syncwarp();                                      // the lanes of a row have written all its weights
#pragma unroll 4
        for (int key = 0; key < KEYS; ++key) {
            const float upper = weights[2 * ty * PITCH + key], lower = weights[(2 * ty + 1) * PITCH + key];
            for (int c = 0; c < D / 16; ++c) {
                const float2 two = __half22float2(*reinterpret_cast<const __half2*>(&values[key * D + 16 * c + 2 * tx]));
                acc[0][c].x += upper * two.x, acc[0][c].y += upper * two.y;
                acc[1][c].x += lower * two.x, acc[1][c].y += lower * two.y;
            }
        }
        __syncthreads();                                   // keys and values are read before the next ones come
    }
    for (int r = 0; r < 2; ++r) {
        const int row = block_row + 2 * ty + r;
        if (row >= S) break;
        const size_t at = (size_t(slice) * gridDim.z + blockIdx.z) * S + row;
        const float inverse = run_sum[r] > 0.0f ? 1.0f / run_sum[r] : 0.0f;
        for (int c = 0; c < D / 16; ++c)
            *reinterpret_cast<float2*>(&part[at * D + 16 * c + 2 * tx]) = make_float2(acc[r][c].x * inverse, acc[r][c].y * inverse);
        if (tx == 0) part_lse[at] = run_max[r] + log2f(run_sum[r]);  // -inf where the slice has no key for the row
    }
}

// A warp blends a row; a lane has two columns of every 64.
template <int D>
__global__ void __launch_bounds__(THREADS)
blend_slices(const float* __restrict__ part, const float* __restrict__ part_lse, __half* __restrict__ out, int rows) {
    const int row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float top = -INFINITY, total = 0.0f;
    for (int s = 0; s < SPLITS; ++s) top = fmaxf(top, part_lse[size_t(s) * rows + row]);
    float2 acc[D / 64] = {};
    for (int s = 0; s < SPLITS; ++s) {
        const size_t at = size_t(s) * rows + row;
        const float share = exp2f(part_lse[at] - top);
        total += share;
        for (int c = 0; c < D / 64; ++c) {
            const float2 two = *reinterpret_cast<const float2*>(&part[at * D + 64 * c + 2 * lane]);
            acc[c].x += share * two.x, acc[c].y += share * two.y;
        }
    }
    for (int c = 0; c < D / 64; ++c)
        *reinterpret_cast<__half2*>(&out[size_t(row) * D + 64 * c + 2 * lane]) = __floats2half2_rn(acc[c].x / total, acc[c].y / total);
}
