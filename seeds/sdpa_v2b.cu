/* evoengine
name: sdpa_v2b
precision: fp16
summary: scalar attention, one warp owns a row; scores live in registers, spread over the lanes
tunables:
  BLOCK_M: [64, 32, 128, 16]   # query rows of a block at D = 64
  BLOCK_N: [64, 32, 128]       # keys of a K/V tile at D = 64
  WARPS: [8, 4, 16]
  STAGES: [3, 2, 4]            # K/V tiles held in shared memory at once
  UNROLL: [8, 4, 16]           # keys whose warp reductions overlap
let:
  M: BLOCK_M if D <= 64 else 3 * BLOCK_M // 4
  N: BLOCK_N if D <= 64 else max(32, BLOCK_N // 2)
  SHARED: 2*M*D + STAGES*4*N*D + 4*M*D + 8*M    # Q, K and V stages, accumulator, m and l
require: ["SHARED <= MAX_SHARED_BYTES"]
launches:
  - kernel: sdpa<D, M, N, causal>
    grid: ["ceil_div(S, M)", "B*H"]
    block: ["WARPS*32"]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

// out = softmax(scale * Q K^T) V for one head and one tile of M query rows per block.
// K and V stream through shared memory in tiles of N keys. Each row keeps a running
// maximum m, a running denominator l and an unnormalised accumulator; a tile that
// raises m rescales what was gathered before (streaming softmax).

constexpr unsigned FULL_WARP = 0xffffffffu;
constexpr float LOG2_E = 1.4426950408889634f;

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// Scores carry a factor log2(e), so that the hardware's 2^x serves as e^x.
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Only lane 0 holds the sum afterwards.
__device__ __forceinline__ float warp_sum_to_lane0(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(FULL_WARP, x, step);
    return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, step));
    return x;
}

// With `inside` false nothing is read: the 16 bytes in shared memory become zero.
__device__ __forceinline__ void copy16_async(half* shared, const half* global, bool inside) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(address), "l"(global), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// One warp starts the copy of keys [start, start + N). Keys past S must be zero, not
// stale: their weight is 0, and 0 times a left-over NaN in V would still be NaN.
template <int D, int N>
__device__ __forceinline__ void load_tile(half* tile, const half* head, int start, int S, int lane) {
    constexpr int CHUNKS_PER_ROW = D / 8;
#pragma unroll 4
    for (int chunk = lane; chunk < N * CHUNKS_PER_ROW; chunk += 32) {
        int row = chunk / CHUNKS_PER_ROW;
        int column = chunk % CHUNKS_PER_ROW * 8;
        bool inside = start + row < S;
        const half* source = inside ? head + static_cast<size_t>(start + row) * D + column : head;
        copy16_async(tile + row * D + column, source, inside);
    }
}

template <int D, int M, int N, bool CAUSAL>
__global__ void __launch_bounds__(WARPS * 32)
sdpa(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v,
     half* __restrict__ out, int S, float scale) {
    static_assert(D % 64 == 0 && N % 32 == 0 && STAGES >= 2, "unsupported tile");
    // A lane owns the element pairs lane, lane + 32, ... of a row: neighbouring lanes
    // touch neighbouring banks.
    constexpr int PAIRS = D / 64;
    constexpr int KEYS_PER_LANE = N / 32;
    constexpr int ROWS_PER_WARP = (M + WARPS - 1) / WARPS;

    extern __shared__ __align__(16) unsigned char shared[];
    half* q_tile = reinterpret_cast<half*>(shared);                     // [M][D]
    half* k_tiles = q_tile + M * D;                                     // [STAGES][N][D]
    half* v_tiles = k_tiles + STAGES * N * D;                           // [STAGES][N][D]
    float* accumulator = reinterpret_cast<float*>(v_tiles + STAGES * N * D);  // [M][D]
    float* row_max = accumulator + M * D;                               // [M], m
    float* row_sum = row_max + M;                                       // [M], l

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int q_start = blockIdx.x * M;
    const int q_rows = min(M, S - q_start);
    const size_t head = static_cast<size_t>(blockIdx.y) * S * D;
    const half* k_head = k + head;
    const half* v_head = v + head;

    // No two warps share a row, so m and l need no atomics and no block-wide barrier.
    const int first_row = warp * ROWS_PER_WARP;
    const int end_row = min(first_row + ROWS_PER_WARP, q_rows);

    // The last warp feeds the others and computes its own rows like they do.
    const bool producer = warp == WARPS - 1;
    const int last_key = CAUSAL ? q_start + q_rows : S;   // keys at or after it are invisible to the block
    const int tiles = (last_key + N - 1) / N;

    if (producer) {
#pragma unroll
        for (int t = 0; t < STAGES - 1; ++t) {
            if (t < tiles) {
                load_tile<D, N>(k_tiles + t * N * D, k_head, t * N, S, lane);
                load_tile<D, N>(v_tiles + t * N * D, v_head, t * N, S, lane);
            }
            commit_copies();   // an empty group too, so that groups and tiles count alike
        }
    }
    for (int i = threadIdx.x; i < q_rows * D / 8; i += WARPS * 32)
        reinterpret_cast<uint4*>(q_tile)[i] =
            reinterpret_cast<const uint4*>(q + head + static_cast<size_t>(q_start) * D)[i];
    for (int i = threadIdx.x; i < M * D; i += WARPS * 32) accumulator[i] = 0.0f;
    for (int i = threadIdx.x; i < M; i += WARPS * 32) {
        row_max[i] = minus_infinity();
        row_sum[i] = 0.0f;
    }

    for (int t = 0; t < tiles; ++t) {
        if (producer) wait_copies<STAGES - 2>();
        __syncthreads();   // tile t is visible to all, and all are done with tile t - 1
        if (producer) {
            const int next = t + STAGES - 1;   // takes the buffer of tile t - 1
            if (next < tiles) {
                load_tile<D, N>(k_tiles + next % STAGES * N * D, k_head, next * N, S, lane);
                load_tile<D, N>(v_tiles + next % STAGES * N * D, v_head, next * N, S, lane);
            }
            commit_copies();
        }
        const half2* k_tile = reinterpret_cast<const half2*>(k_tiles + t % STAGES * N * D);
        const half2* v_tile = reinterpret_cast<const half2*>(v_tiles + t % STAGES * N * D);

        for (int row = first_row; row < end_row; ++row) {
            if (CAUSAL && t * N > q_start + row) continue;   // the row sees none of these keys

            float2 query[PAIRS];
#pragma unroll
            for (int i = 0; i < PAIRS; ++i)
                query[i] = __half22float2(reinterpret_cast<const half2*>(q_tile)[row * D / 2 + lane + 32 * i]);

            // Every lane receives every score but keeps only those of its own keys, lane and
            // lane + 32 and so on: N scores in each lane would not fit in registers.
            float scores[KEYS_PER_LANE];
            float tile_max = minus_infinity();
#pragma unroll
            for (int c = 0; c < KEYS_PER_LANE; ++c) {
                scores[c] = 0.0f;
#pragma unroll UNROLL
                for (int n = 0; n < 32; ++n) {
                    float dot = 0.0f;
#pragma unroll
                    for (int i = 0; i < PAIRS; ++i) {
                        float2 key = __half22float2(k_tile[(c * 32 + n) * D / 2 + lane + 32 * i]);
                        dot += query[i].x * key.x + query[i].y * key.y;
                    }
                    dot = __shfl_sync(FULL_WARP, warp_sum_to_lane0(dot), 0);
                    if (lane == n) scores[c] = dot;
                }
                const int key = t * N + c * 32 + lane;
                const bool visible = key < S && (!CAUSAL || key <= q_start + row);
                scores[c] = visible ? scores[c] * (scale * LOG2_E) : minus_infinity();
                tile_max = fmaxf(tile_max, scores[c]);
            }

            // Key 0 lies in tile 0 and is visible to every row, so from the first tile on
            // the maximum is finite and the differences below are never inf - inf.
            const float old_max = row_max[row];
            const float new_max = fmaxf(old_max, warp_max(tile_max));
            const float rescale = exp2_approx(old_max - new_max);
            float tile_sum = 0.0f;
#pragma unroll
            for (int c = 0; c < KEYS_PER_LANE; ++c) {
                scores[c] = exp2_approx(scores[c] - new_max);
                tile_sum += scores[c];
            }
            tile_sum = warp_sum_to_lane0(tile_sum);   // the lanes hold different keys: reduce
            __syncwarp();   // all lanes have read row_max before lane 0 replaces it
            if (lane == 0) {
                row_max[row] = new_max;
                row_sum[row] = row_sum[row] * rescale + tile_sum;
            }

            float2* row_accumulator = reinterpret_cast<float2*>(accumulator + row * D);
            float2 sum[PAIRS];
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) {
                sum[i] = row_accumulator[lane + 32 * i];
                sum[i].x *= rescale;
                sum[i].y *= rescale;
            }
#pragma unroll
            for (int c = 0; c < KEYS_PER_LANE; ++c) {
#pragma unroll UNROLL
                for (int n = 0; n < 32; ++n) {
                    const float weight = __shfl_sync(FULL_WARP, scores[c], n);
#pragma unroll
                    for (int i = 0; i < PAIRS; ++i) {
                        float2 value = __half22float2(v_tile[(c * 32 + n) * D / 2 + lane + 32 * i]);
                        sum[i].x += weight * value.x;
                        sum[i].y += weight * value.y;
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) row_accumulator[lane + 32 * i] = sum[i];
        }
    }

    __syncwarp();   // lane 0 wrote row_sum, every lane reads it
    for (int row = first_row; row < end_row; ++row) {
        const float inverse = 1.0f / row_sum[row];
        half2* target = reinterpret_cast<half2*>(out + head + static_cast<size_t>(q_start + row) * D);
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            float2 sum = reinterpret_cast<const float2*>(accumulator + row * D)[lane + 32 * i];
            target[lane + 32 * i] = __floats2half2_rn(sum.x * inverse, sum.y * inverse);
        }
    }
}
