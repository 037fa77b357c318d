/* evoengine
name: walnut_one_buffer_microtiles
precision: fp16
summary: scalar attention in fp32 with 2x4 microtiles, K and V take turns in one buffer, blocks stride over query tiles
tunables:
  ITEMS_PER_BLOCK: [2, 1, 4]
let:
  TILES: ceil_div(S, 32)
  ITEMS: TILES*B*H
launches:
  - kernel: "walnut<D, causal>"
    grid: ["ceil_div(ITEMS, ITEMS_PER_BLOCK)"]
    block: [128]
    shared: 4*32*(D+4) + 2*32*(D+8) + 4*32*33
    args: [q, k, v, out, S, TILES, B*H, scale]
*/
#include <cuda_fp16.h>

namespace walnut_detail {

enum : int { kTile = 32, kThreads = 128, kTeam = 8 };  // a team of 8 lanes owns two queries

struct Views {
    float* query;   // [32][D + 4], scaled
    __half* keyval; // [32][D + 8], keys, then values
    float* weight;  // [32][33]
};

__device__ __forceinline__ float team_max(float x) {
    for (int offset = 1; offset < kTeam; offset <<= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
    return x;
}

__device__ __forceinline__ float team_sum(float x) {
    for (int step = 1; step < kTeam; step <<= 1) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

template <int D>
__device__ __forceinline__ void load_rows(__half* to, const __half* from, int first, int S) {
    for (int i = threadIdx.x; i < kTile * D / 8; i += kThreads) {
        const int r = i / (D / 8), c = i % (D / 8);
        const int4 zero = {0, 0, 0, 0};
        reinterpret_cast<int4*>(to + r * (D + 8))[c] =
            first + r < S ? reinterpret_cast<const int4*>(from + size_t(first + r) * D)[c] : zero;
    }
}

template <int D>
__device__ __forceinline__ void load_query(float* to, const __half* from, int first, int S, float factor) {
    for (int i = threadIdx.x; i < kTile * D / 2; i += kThreads) {
        const int r = i / (D / 2), c = i % (D / 2) * 2;
        float2 x = make_float2(0.0f, 0.0f);
        if (first + r < S) x = __half22float2(*reinterpret_cast<const __half2*>(from + size_t(first + r) * D + c));
        to[r * (D + 4) + c] = x.x * factor;
        to[r * (D + 4) + c + 1] = x.y * factor;
    }
}

}  // namespace walnut_detail

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
walnut(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int S, int tiles, int heads, float scale) {
    using namespace walnut_detail;
    extern __shared__ __align__(16) unsigned char raw[];
    Views sh;
    sh.query = reinterpret_cast<float*>(raw);
    sh.keyval = reinterpret_cast<__half*>(sh.query + kTile * (D + 4));
    sh.weight = reinterpret_cast<float*>(sh.keyval + kTile * (D + 8));

    const int team = threadIdx.x / kTeam, tx = threadIdx.x % kTeam;
    const int r0 = 2 * team;

    // Late query tiles see most keys under the causal mask, so they come first.
    for (int item = blockIdx.x; item < tiles * heads; item += gridDim.x) {
        const int head = item % heads, first = (tiles - 1 - item / heads) * kTile;
        const size_t base = size_t(head) * S * D;

        float acc[2][D / 8] = {};
        float top[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};

        __syncthreads();
        load_query<D>(sh.query, q + base, first, S, scale * 1.44269504f);

        const int limit = CAUSAL ? min(S, first + kTile) : S;
        const int rounds = (limit + kTile - 1) / kTile;
        for (int round = 0; round < rounds; ++round) {
            const int k0 = round * kTile;
            load_rows<D>(sh.keyval, k + base, k0, S);
            __syncthreads();

            // scores of rows r0, r0+1 and keys tx, tx+8, tx+16, tx+24
            float s[2][4] = {};
            for (int c = 0; c < D; c += 2) {
                const float2 a0 = *reinterpret_cast<const float2*>(sh.query + r0 * (D + 4) + c);
                const float2 a1 = *reinterpret_cast<const float2*>(sh.query + (r0 + 1) * (D + 4) + c);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const float2 b =
                        __half22float2(*reinterpret_cast<const __half2*>(sh.keyval + (tx + 8 * j) * (D + 8) + c));
                    s[0][j] += a0.x * b.x + a0.y * b.y;
                    s[1][j] += a1.x * b.x + a1.y * b.y;
                }
            }
            __syncthreads();  // keys are done with
            load_rows<D>(sh.keyval, v + base, k0, S);

            // softmax while the values are on their way
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float high = top[i];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int key = k0 + tx + 8 * j;
                    if (key >= S || (CAUSAL && key > first + r0 + i)) s[i][j] = -INFINITY;
                    high = fmaxf(high, s[i][j]);
                }
                high = team_max(high);
                const float keep = exp2f(top[i] - high);
                top[i] = high;
                float mine = 0.0f;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const float e = exp2f(s[i][j] - high);
                    sh.weight[(r0 + i) * 33 + tx + 8 * j] = e;
                    mine += e;
                }
                total[i] = total[i] * keep + team_sum(mine);
#pragma unroll
                for (int c = 0; c < D / 8; ++c) acc[i][c] *= keep;
            }
            __syncthreads();  // values and weights are there

            // columns 2*tx + 16*c and the next one
            for (int n = 0; n < kTile; ++n) {
                const float w0 = sh.weight[r0 * 33 + n], w1 = sh.weight[(r0 + 1) * 33 + n];
#pragma unroll
                for (int c = 0; c < D / 16; ++c) {
                    const float2 x =
                        __half22float2(*reinterpret_cast<const __half2*>(sh.keyval + n * (D + 8) + 2 * tx + 16 * c));
                    acc[0][2 * c] += w0 * x.x;
                    acc[0][2 * c + 1] += w0 * x.y;
                    acc[1][2 * c] += w1 * x.x;
                    acc[1][2 * c + 1] += w1 * x.y;
                }
            }
            __syncthreads();  // values are done with
        }

#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = first + r0 + i;
            if (row >= S) continue;
            const float inv = 1.0f / total[i];
#pragma unroll
            for (int c = 0; c < D / 16; ++c)
                *reinterpret_cast<__half2*>(out + base + size_t(row) * D + 2 * tx + 16 * c) =
                    __floats2half2_rn(acc[i][2 * c] * inv, acc[i][2 * c + 1] * inv);
        }
    }
}
