/* evoengine
name: sdpa_v2c
precision: fp16
summary: scalar attention with the score tile in shared memory; K and V are reused by several rows
tunables:
  BLOCK_M: [64, 32, 128, 16]   # query rows of a block at D = 64
  BLOCK_N: [64, 32, 128]       # keys of a K/V tile at D = 64
  WARPS: [8, 4, 16]
  STAGES: [2, 3, 4]            # K/V tiles held in shared memory at once
  ROWS: [2, 4, 1]              # rows a warp works on together
let:
  M: BLOCK_M if D <= 64 else 3 * BLOCK_M // 4
  N: BLOCK_N if D <= 64 else BLOCK_N // 2
  SHARED: 2*M*D + STAGES*4*N*D + 4*M*D + 4*M*N + 8*M   # Q, K and V stages, accumulator, scores, m and l
require: ["M % (WARPS * ROWS) == 0", "SHARED <= MAX_SHARED_BYTES"]
launches:
  - kernel: sdpa<D, M, N, ROWS, causal>
    grid: ["ceil_div(S, M)", "B*H"]
    block: ["WARPS*32"]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

// out = softmax(scale * Q K^T) V for one head and one tile of M query rows per block.
// Every K/V tile is worked on in two phases with a barrier between them: all scores of
// the tile go to shared memory, then the softmax and P V read them back. With the scores
// out of the registers a warp can hold R rows at once, and each K or V element it
// fetches serves R rows instead of one.

constexpr unsigned FULL_WARP = 0xffffffffu;
constexpr float LOG2_E = 1.4426950408889634f;
constexpr int KEYS = 4;   // keys worked on together: their scores move as one float4

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

// Phase 1: scores[r][n] for R rows and all N keys of the tile. A lane multiplies the
// element pairs lane, lane + 32, ... of both vectors; the warp adds the products up.
template <int D, int N, int R, bool CAUSAL>
__device__ __forceinline__ void score_rows(float* scores, const half* q_rows, const half* k_tile,
                                           int row, int key, int S, float scale_log2, int lane) {
    constexpr int PAIRS = D / 64;
    float2 query[R][PAIRS];
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int i = 0; i < PAIRS; ++i)
            query[r][i] = __half22float2(reinterpret_cast<const half2*>(q_rows + r * D)[lane + 32 * i]);

#pragma unroll 1
    for (int n = 0; n < N; n += KEYS) {
        float dot[R][KEYS] = {};
#pragma unroll
        for (int j = 0; j < KEYS; ++j)
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) {
                float2 x = __half22float2(reinterpret_cast<const half2*>(k_tile + (n + j) * D)[lane + 32 * i]);
#pragma unroll
                for (int r = 0; r < R; ++r) dot[r][j] += query[r][i].x * x.x + query[r][i].y * x.y;
            }
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int j = 0; j < KEYS; ++j) {
                const bool visible = key + n + j < S && (!CAUSAL || key + n + j <= row + r);
                const float sum = warp_sum_to_lane0(dot[r][j]);
                dot[r][j] = visible ? sum * scale_log2 : minus_infinity();
            }
            if (lane == 0)
                *reinterpret_cast<float4*>(scores + r * N + n) =
                    make_float4(dot[r][0], dot[r][1], dot[r][2], dot[r][3]);
        }
    }
}

// Phase 2: softmax of R rows over the tile, and their share of P V. All lanes read the
// same scores, so each has the whole maximum and the whole sum on its own: reducing the
// sum over the warp would count it 32 times.
template <int D, int N, int R>
__device__ __forceinline__ void accumulate_rows(float* accumulator, float* row_max, float* row_sum,
                                                const float* scores, const half* v_tile, int lane) {
    constexpr int PAIRS = D / 64;
    float max[R], rescale[R], sum[R];
#pragma unroll
    for (int r = 0; r < R; ++r) max[r] = row_max[r];
#pragma unroll 2
    for (int n = 0; n < N; n += KEYS)
#pragma unroll
        for (int r = 0; r < R; ++r) {
            float4 s = *reinterpret_cast<const float4*>(scores + r * N + n);
            max[r] = fmaxf(max[r], fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)));
        }
    // Key 0 lies in tile 0 and is visible to every row, so from the first tile on the
    // maximum is finite and the differences below are never inf - inf.
#pragma unroll
    for (int r = 0; r < R; ++r) {
        rescale[r] = exp2_approx(row_max[r] - max[r]);
        sum[r] = row_sum[r] * rescale[r];
    }

    float2 product[R][PAIRS] = {};
#pragma unroll 1
    for (int n = 0; n < N; n += KEYS) {
        float weight[R][KEYS];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            float4 s = *reinterpret_cast<const float4*>(scores + r * N + n);
            weight[r][0] = exp2_approx(s.x - max[r]);
            weight[r][1] = exp2_approx(s.y - max[r]);
            weight[r][2] = exp2_approx(s.z - max[r]);
            weight[r][3] = exp2_approx(s.w - max[r]);
            sum[r] += (weight[r][0] + weight[r][1]) + (weight[r][2] + weight[r][3]);
        }
#pragma unroll
        for (int j = 0; j < KEYS; ++j)
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) {
                float2 x = __half22float2(reinterpret_cast<const half2*>(v_tile + (n + j) * D)[lane + 32 * i]);
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    product[r][i].x += weight[r][j] * x.x;
                    product[r][i].y += weight[r][j] * x.y;
                }
            }
    }

    __syncwarp();   // all lanes have read row_max and row_sum before lane 0 replaces them
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (lane == 0) {
            row_max[r] = max[r];
            row_sum[r] = sum[r];
        }
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            float2* total = reinterpret_cast<float2*>(accumulator + r * D) + lane + 32 * i;
            *total = make_float2(total->x * rescale[r] + product[r][i].x,
                                 total->y * rescale[r] + product[r][i].y);
        }
    }
}

template <int D, int M, int N, int R, bool CAUSAL>
__global__ void __launch_bounds__(WARPS * 32)
sdpa(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v,
     half* __restrict__ out, int S, float scale) {
    static_assert(D % 64 == 0 && N % KEYS == 0 && M % (WARPS * R) == 0 && STAGES >= 2, "unsupported tile");
    constexpr int ROWS_PER_WARP = M / WARPS;

    extern __shared__ __align__(16) unsigned char shared[];
    half* q_tile = reinterpret_cast<half*>(shared);                     // [M][D]
    half* k_tiles = q_tile + M * D;                                     // [STAGES][N][D]
    half* v_tiles = k_tiles + STAGES * N * D;                           // [STAGES][N][D]
    float* accumulator = reinterpret_cast<float*>(v_tiles + STAGES * N * D);  // [M][D]
    float* scores = accumulator + M * D;                                // [M][N]
    float* row_max = scores + M * N;                                    // [M], m
    float* row_sum = row_max + M;                                       // [M], l

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int q_start = blockIdx.x * M;
    const int q_rows = min(M, S - q_start);
    const size_t head = static_cast<size_t>(blockIdx.y) * S * D;
    const half* k_head = k + head;
    const half* v_head = v + head;

    // A warp owns consecutive rows; no other warp touches their m, l or accumulator.
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
    // Rows past S are zero: they are computed along with their group and never stored.
    for (int i = threadIdx.x; i < M * D / 8; i += WARPS * 32)
        reinterpret_cast<uint4*>(q_tile)[i] =
            i < q_rows * D / 8
                ? reinterpret_cast<const uint4*>(q + head + static_cast<size_t>(q_start) * D)[i]
                : make_uint4(0, 0, 0, 0);
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
        const half* k_tile = k_tiles + t % STAGES * N * D;
        const half* v_tile = v_tiles + t % STAGES * N * D;

        // Both phases must pass over the same groups: those with a row that sees a key here.
        for (int row = first_row; row < end_row; row += R)
            if (!CAUSAL || t * N <= q_start + row + R - 1)
                score_rows<D, N, R, CAUSAL>(scores + row * N, q_tile + row * D, k_tile, q_start + row,
                                            t * N, S, scale * LOG2_E, lane);
        __syncthreads();   // lane 0 wrote the scores, all lanes read them
        for (int row = first_row; row < end_row; row += R)
            if (!CAUSAL || t * N <= q_start + row + R - 1)
                accumulate_rows<D, N, R>(accumulator + row * D, row_max + row, row_sum + row,
                                         scores + row * N, v_tile, lane);
    }

    __syncwarp();   // lane 0 wrote row_sum, every lane reads it
    for (int row = first_row; row < end_row; ++row) {
        const float inverse = 1.0f / row_sum[row];
        half2* target = reinterpret_cast<half2*>(out + head + static_cast<size_t>(q_start + row) * D);
#pragma unroll
        for (int i = 0; i < D / 64; ++i) {
            float2 total = reinterpret_cast<const float2*>(accumulator + row * D)[lane + 32 * i];
            target[lane + 32 * i] = __floats2half2_rn(total.x * inverse, total.y * inverse);
        }
    }
}
