/* evoengine
name: turnstile_fold
precision: fp16
summary: the keys are cut into SPLITS ranges; blocks of one range each fold their partial softmax into a running state in global memory, one after the other
tunables:
  SPLITS: [3, 2, 4, 1]
let:
  QUERY_TILES: ceil_div(S, 16)
  CHUNK: round_up(ceil_div(S, SPLITS), 32)
scratch:
  state_max: {dtype: float32, shape: [B*H, S]}
  state_sum: {dtype: float32, shape: [B*H, S]}
  state_acc: {dtype: float32, shape: [B*H, S, D]}
  turn: {dtype: int32, shape: ["B*H * ceil_div(S, 16)"], init: 0}
launches:
  - kernel: "fold_attention<D>"
    grid: [QUERY_TILES, "B*H", SPLITS]
    block: [128]
    args: [q, k, v, out, state_max, state_sum, state_acc, turn, S, CHUNK, causal, scale]
*/
/*
 * Plain fp32 arithmetic. A block has 16 queries (4 per warp) and one range of keys. In the score phase a lane has a key
 * and all four queries of its warp; in the value phase a lane has D/32 columns of these four queries.
 *
 * Blocks of range 0 have the lowest z and are started first. A block never waits for one that is started after it.
 */
#include <cuda_fp16.h>

#define TILE_Q     16
#define TILE_K     32
#define WARP_COUNT 4
#define FULL       0xffffffffu
#define NEG_INF    __int_as_float(0xff800000)

#define FOR_QUERY(i) _Pragma("unroll") for (int i = 0; i < 4; ++i)

__device__ __forceinline__ float warp_max(float x)
{
    for (int o = 16; o > 0; o >>= 1) x = fmaxf(x, __shfl_xor_sync(FULL, x, o));
    return x;
}

__device__ __forceinline__ float warp_sum(float x)
{
    for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(FULL, x, o);
    return x;
}

__device__ __forceinline__ int load_acquire(const int* p)
{
    int x;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

__device__ __forceinline__ void store_release(int* p, int x)
{
    asm volatile("st.release.gpu.global.s32 [%0], %1;" :: "l"(p), "r"(x) : "memory");
}

template <int D>
__global__ void __launch_bounds__(128)
fold_attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out,
               float* state_max, float* state_sum, float* state_acc, int* turn, int S, int chunk, bool causal, float scale)
{
    const int PAIRS = D / 2;                  /* half2 in a row */
    const int MINE  = D / 64;                 /* half2 columns of a lane: lane, lane + 32 */

    __shared__ float   q_t[D][TILE_Q];        /* queries turned, so that a warp reads its four as one float4 */
    __shared__ half2   k_s[TILE_K][D / 2 + 1];
    __shared__ half2   v_s[TILE_K][D / 2];
    __shared__ float4  p_s[WARP_COUNT][TILE_K];

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int q0   = blockIdx.x * TILE_Q;
    const int bh   = blockIdx.y;
    const int part = blockIdx.z;
    const size_t base = (size_t)bh * S * D;

    const int end    = causal ? min(S, q0 + TILE_Q) : S;   /* no query of the block sees a key from here on */
    const int parts  = (end + chunk - 1) / chunk;
    const int start  = part * chunk;
    const int stop   = min(end, start + chunk);
    if (part >= parts) return;

    for (int i = threadIdx.x; i < TILE_Q * D; i += 128) {
        int r = i / D, c = i % D;
        q_t[c][r] = q0 + r < S ? __half2float(q[base + (size_t)(q0 + r) * D + c]) * scale : 0.0f;
    }

    float m[4], l[4], acc[4][2 * MINE];
    FOR_QUERY(i) {
        m[i] = NEG_INF;
        l[i] = 0.0f;
        for (int c = 0; c < 2 * MINE; ++c) acc[i][c] = 0.0f;
    }

    for (int k0 = start; k0 < stop; k0 += TILE_K) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE_K * PAIRS; i += 128) {
            int r = i / PAIRS, c = i % PAIRS;
            half2 zero = __floats2half2_rn(0.0f, 0.0f);
            const size_t at = base / 2 + (size_t)(k0 + r) * PAIRS + c;
            k_s[r][c] = k0 + r < stop ? ((const half2*)k)[at] : zero;
            v_s[r][c] = k0 + r < stop ? ((const half2*)v)[at] : zero;
        }
        __syncthreads();

        float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int c = 0; c < PAIRS; ++c) {
            const float2 key = __half22float2(k_s[lane][c]);
            const float4 a = *(const float4*)&q_t[2 * c][4 * warp];
            const float4 b = *(const float4*)&q_t[2 * c + 1][4 * warp];
            s[0] += a.x * key.x + b.x * key.y;
            s[1] += a.y * key.x + b.y * key.y;
            s[2] += a.z * key.x + b.z * key.y;
            s[3] += a.w * key.x + b.w * key.y;
        }

        float p[4];
        FOR_QUERY(i) {
            const int row = q0 + 4 * warp + i;
            const bool seen = k0 + lane < stop && (!causal || k0 + lane <= row);
            const float x   = seen ? s[i] : NEG_INF;
            const float top = fmaxf(m[i], warp_max(x));
            const float ref = top == NEG_INF ? 0.0f : top;
            const float shrink = __expf(m[i] - ref);
            p[i] = __expf(x - ref);
            l[i] = l[i] * shrink + warp_sum(p[i]);
            m[i] = top;
            for (int c = 0; c < 2 * MINE; ++c) acc[i][c] *= shrink;
        }
        p_s[warp][lane] = make_float4(p[0], p[1], p[2], p[3]);
        __syncwarp();

        for (int j = 0; j < TILE_K; ++j) {
            const float4 w = p_s[warp][j];
            for (int c = 0; c < MINE; ++c) {
                const float2 val = __half22float2(v_s[j][lane + 32 * c]);
                acc[0][2 * c] += w.x * val.x;  acc[0][2 * c + 1] += w.x * val.y;
                acc[1][2 * c] += w.y * val.x;  acc[1][2 * c + 1] += w.y * val.y;
                acc[2][2 * c] += w.z * val.x;  acc[2][2 * c + 1] += w.z * val.y;
                acc[3][2 * c] += w.w * val.x;  acc[3][2 * c + 1] += w.w * val.y;
            }
        }
    }

    /* Fold: wait for the range before this one, add to what it left, pass the turn on. */
    int* my_turn = turn + bh * gridDim.x + blockIdx.x;
    if (part > 0) {
        if (threadIdx.x == 0)
            while (load_acquire(my_turn) != part) __nanosleep(64);
        __syncthreads();
    }
    FOR_QUERY(i) {
        const int row = q0 + 4 * warp + i;
        if (row >= S) break;
        const size_t at = (size_t)bh * S + row;
        float* old = state_acc + at * D;
        if (part > 0) {
            const float before = __ldcg(state_max + at);
            const float top = fmaxf(before, m[i]);
            const float mine = __expf(m[i] - top), theirs = __expf(before - top);
            l[i] = l[i] * mine + __ldcg(state_sum + at) * theirs;
            for (int c = 0; c < MINE; ++c) {
                const float2 o = __ldcg((const float2*)old + lane + 32 * c);
                acc[i][2 * c]     = acc[i][2 * c] * mine + o.x * theirs;
                acc[i][2 * c + 1] = acc[i][2 * c + 1] * mine + o.y * theirs;
            }
            m[i] = top;
            __syncwarp();                     /* all lanes have read the statistics before one changes them */
        }
        if (part == parts - 1) {
            const float inverse = 1.0f / l[i];
            for (int c = 0; c < MINE; ++c)
                ((half2*)(out + base + (size_t)row * D))[lane + 32 * c] =
                    __floats2half2_rn(acc[i][2 * c] * inverse, acc[i][2 * c + 1] * inverse);
        } else {
            if (lane == 0) {
                state_max[at] = m[i];
                state_sum[at] = l[i];
            }
            for (int c = 0; c < MINE; ++c)
                ((float2*)old)[lane + 32 * c] = make_float2(acc[i][2 * c], acc[i][2 * c + 1]);
        }
    }
    if (part < parts - 1) {
        __threadfence();
        __syncthreads();    /* everybody's state is written */
        if (threadIdx.x == 0) store_release(my_turn, part + 1);
    }
}
