/* evoengine
name: attention_repacked_keys
precision: fp16
summary: a first launch turns keys into packets that 32 lanes read as one line, a second computes four queries a warp in plain arithmetic
tunables:
  warps_per_block: [4, 8, 2]
  turns: [3, 1, 6]             # groups of four queries that a warp works off, one after the other
let:
  packets: ceil_div(S, 32)
  groups: ceil_div(S, 4)       # of four queries, in one head
  all_groups: B * H * groups
scratch:
  packed: {dtype: float16, shape: [B, H, packets, 32, D]}
launches:
  - kernel: repack_keys<D>
    grid: [packets, "B*H"]
    block: [64]
    args: [k, packed, S]
  - kernel: four_queries<D>
    grid: ["ceil_div(all_groups, turns * warps_per_block)"]
    block: ["32 * warps_per_block"]
    args: [q, packed, v, out, S, packets, groups, all_groups, scale, causal]
*/

/*
 * A lane that reads "its" key from [S, D] strides by D halves, and a warp touches 32 lines for every
 * 16 bytes a lane. So the keys are rearranged once per head into packets of 32 keys:
 *
 *     packed[packet][d / 8][key in packet][d % 8]
 *
 * in which the eight dimensions d/8 of the 32 keys are 512 consecutive bytes.
 */
#include <cuda_fp16.h>

#define FULL 0xffffffffu

template <int D>
__global__ void repack_keys(const __half *k, __half *packed, int n_keys)
{
    const int pieces = D / 8;
    const uint4 *src = (const uint4 *)(k + (size_t)blockIdx.y * n_keys * D);
    uint4 *dst = (uint4 *)(packed + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 32 * D);

    for (int i = threadIdx.x; i < 32 * pieces; i += blockDim.x) {
        int key = i / pieces, piece = i % pieces;
        int row = blockIdx.x * 32 + key;
        uint4 x = make_uint4(0u, 0u, 0u, 0u);
        if (row < n_keys)
            x = src[(size_t)row * pieces + piece];
        dst[piece * 32 + key] = x;
    }
}

__device__ float warp_max(float x)
{
    for (int step = 16; step >= 1; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(FULL, x, step));
    return x;
}

__device__ float warp_sum(float x)
{
    for (int step = 16; step >= 1; step /= 2)
        x += __shfl_xor_sync(FULL, x, step);
    return x;
}

template <int D>
__global__ void four_queries(const __half *q, const __half *packed, const __half *v, __half *out,
                             int n_keys, int packets, int groups, int all_groups, float scale, bool causal)
{
    /* Each warp has its own slice of both arrays; no barrier of the whole block is needed. */
    __shared__ float4 query_cols[warps_per_block][D];     /* column d of the four queries, scaled */
    __shared__ float4 weight_of[warps_per_block][32];     /* weight of a key of the packet for the four */

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_group = blockIdx.x * warps_per_block + warp;
    const int all_warps = gridDim.x * warps_per_block;

    for (int g = first_group; g < all_groups; g += all_warps) {
        const int head = g / groups, row0 = g % groups * 4;
        const __half *q_head = q + (size_t)head * n_keys * D;
        const __half *v_head = v + (size_t)head * n_keys * D;

        /* Rows past the end repeat the last one; they are not stored. */
        for (int d = lane; d < D; d += 32) {
            float x[4];
            for (int r = 0; r < 4; r++)
                x[r] = __half2float(q_head[(size_t)min(row0 + r, n_keys - 1) * D + d]) * scale;
            query_cols[warp][d] = make_float4(x[0], x[1], x[2], x[3]);
        }
        __syncwarp();

        float acc[4][D / 32] = {};                        /* columns 2*lane, 2*lane + 1, and those 64 on */
        float peak[4], mass[4];
        for (int r = 0; r < 4; r++) {
            peak[r] = __int_as_float(0xff800000);
            mass[r] = 0.f;
        }

        const int end = causal ? min(n_keys, row0 + 4) : n_keys;
        for (int base = 0; base < end; base += 32) {
            const uint4 *packet = (const uint4 *)(packed + ((size_t)head * packets + base / 32) * 32 * D);
            float score[4] = {};
            for (int piece = 0; piece < D / 8; piece++) {
                const uint4 raw = packet[piece * 32 + lane];
                const __half2 *pair = (const __half2 *)&raw;
                for (int e = 0; e < 4; e++) {
                    const float2 kk = __half22float2(pair[e]);
                    const float4 a = query_cols[warp][piece * 8 + 2 * e];
                    const float4 b = query_cols[warp][piece * 8 + 2 * e + 1];
                    score[0] += a.x * kk.x + b.x * kk.y;
                    score[1] += a.y * kk.x + b.y * kk.y;
                    score[2] += a.z * kk.x + b.z * kk.y;
                    score[3] += a.w * kk.x + b.w * kk.y;
                }
            }

            float w[4];
            const int key = base + lane;
            for (int r = 0; r < 4; r++) {
                if (key >= n_keys || (causal && key > row0 + r))
                    score[r] = __int_as_float(0xff800000);
                const float top = fmaxf(peak[r], warp_max(score[r]));
                const float shrink = expf(peak[r] - top);
                w[r] = expf(score[r] - top);
                mass[r] = mass[r] * shrink + w[r];        /* of this lane's keys only */
                for (int c = 0; c < D / 32; c++)
                    acc[r][c] *= shrink;
                peak[r] = top;
            }
            weight_of[warp][lane] = make_float4(w[0], w[1], w[2], w[3]);
            __syncwarp();

            const int here = min(32, end - base);
            for (int n = 0; n < here; n++) {
                const float4 f = weight_of[warp][n];
                for (int c = 0; c < D / 64; c++) {
                    const float2 x = __half22float2(*(const __half2 *)(v_head + (size_t)(base + n) * D + c * 64 + 2 * lane));
                    acc[0][2 * c] += f.x * x.x, acc[0][2 * c + 1] += f.x * x.y;
                    acc[1][2 * c] += f.y * x.x, acc[1][2 * c + 1] += f.y * x.y;
                    acc[2][2 * c] += f.z * x.x, acc[2][2 * c + 1] += f.z * x.y;
                    acc[3][2 * c] += f.w * x.x, acc[3][2 * c + 1] += f.w * x.y;
                }
            }
            __syncwarp();                                 /* before the next packet's weights */
        }

        for (int r = 0; r < 4; r++) {
            const float whole = warp_sum(mass[r]);
            if (row0 + r < n_keys)
                for (int c = 0; c < D / 64; c++) {
                    __half2 *to = (__half2 *)(out + ((size_t)head * n_keys + row0 + r) * D + c * 64 + 2 * lane);
                    *to = __floats2half2_rn(acc[r][2 * c] / whole, acc[r][2 * c + 1] / whole);
                }
        }
    }
}
