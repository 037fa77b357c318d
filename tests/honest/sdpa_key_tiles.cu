/* evoengine
name: sdpa_key_tiles
precision: fp16
summary: flash attention in its plainest form - tiles of Q, K, V and scores in shared memory, fp32 units, four threads a query
tunables:
  BR: [32, 16]
  BC: [32, 16]
launches:
  - kernel: flash<D>
    grid: ["ceil_div(S, BR)", H, B]
    block: [4, BR]
    shared: 4 * ((BR + 2 * BC) * (D + 1) + BR * (BC + 1))
    args: [q, k, v, out, S, scale, causal]
*/
#include <cuda_fp16.h>

template <int D>
__global__ void __launch_bounds__(4 * BR)
flash(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale, bool causal) {
    extern __shared__ float sram[];
    float (*Qi)[D + 1] = reinterpret_cast<float (*)[D + 1]>(sram);
    float (*Kj)[D + 1] = Qi + BR;
    float (*Vj)[D + 1] = Kj + BC;
    float (*P)[BC + 1] = reinterpret_cast<float (*)[BC + 1]>(Vj + BC);
    const size_t head = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * D;
    const int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 4 + tx, q0 = blockIdx.x * BR, row = q0 + ty;

    for (int i = tid; i < BR * D; i += 4 * BR) Qi[i / D][i % D] = q0 + i / D < S ? __half2float(q[head + size_t(q0) * D + i]) : 0.0f;
    float m = -INFINITY, l = 0.0f, acc[D / 4];
#pragma unroll
    for (int d = 0; d < D / 4; ++d) acc[d] = 0.0f;

    const int last = causal ? min(S, q0 + BR) : S;
    for (int j0 = 0; j0 < last; j0 += BC) {
        __syncthreads();
        for (int i = tid; i < BC * D; i += 4 * BR) {
            const bool inside = j0 + i / D < S;
            Kj[i / D][i % D] = inside ? __half2float(k[head + size_t(j0) * D + i]) : 0.0f;
            Vj[i / D][i % D] = inside ? __half2float(v[head + size_t(j0) * D + i]) : 0.0f;
        }
        __syncthreads();
        float row_m = m;
#pragma unroll 2
        for (int c = tx; c < BC; c += 4) {
            float s = 0.0f;
#pragma unroll 8
            for (int d = 0; d < D; ++d) s += Qi[ty][d] * Kj[c][d];
            const int j = j0 + c;
            s = j < S && (!causal || j <= row) ? s * scale : -INFINITY;
            P[ty][c] = s;
            row_m = fmaxf(row_m, s);
        }
        row_m = fmaxf(row_m, __shfl_xor_sync(~0u, row_m, 1));
        row_m = fmaxf(row_m, __shfl_xor_sync(~0u, row_m, 2));
        const float keep = row_m == -INFINITY ? 1.0f : __expf(m - row_m);   // rows beyond S may see no key in a tile
        float row_l = 0.0f;
        for (int c = tx; c < BC; c += 4) {
            const float p = row_m == -INFINITY ? 0.0f : __expf(P[ty][c] - row_m);
            P[ty][c] = p;
            row_l += p;
        }
        row_l += __shfl_xor_sync(~0u, row_l, 1);
        row_l += __shfl_xor_sync(~0u, row_l, 2);
        l = l * keep + row_l;
        m = row_m;
        __syncwarp();
#pragma unroll
        for (int d = 0; d < D / 4; ++d) acc[d] *= keep;
        for (int c = 0; c < BC; ++c) {
            const float p = P[ty][c];
#pragma unroll
            for (int d = 0; d < D / 4; ++d) acc[d] += p * Vj[c][d * 4 + tx];
        }
    }
    if (row < S)
#pragma unroll
        for (int d = 0; d < D / 4; ++d) out[head + size_t(row) * D + d * 4 + tx] = __float2half(acc[d] / l);
}
