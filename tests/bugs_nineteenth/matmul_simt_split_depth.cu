/* evoengine
name: matmul_simt_split_depth
precision: fp16
summary: single-precision lanes with tiles of 64 by 64 and four by four results a thread; three parts of the depth are added by atomics, and a second launch rounds the sums
let:
  PART: round_up(ceil_div(K, 3), 16)
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: multiply_part
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", "ceil_div(K, PART)"]
    block: [16, 16]
    args: [a, b, sums, M, N, K, PART]
  - kernel: round_sums
    grid: ["ceil_div(M * N, 512)"]
    block: [256]
    args: [sums, out, M * N]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 16, SIDE = 16, THREADS = SIDE * SIDE, OWN = TILE / SIDE, LOADS = TILE * DEPTH / THREADS;

__global__ void __launch_bounds__(THREADS)
multiply_part(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ sums, int M, int N, int K,
              int part) {
    __shared__ float left[2][DEPTH][TILE + 4];    // turned: a column of the tile lies together
    __shared__ float right[2][DEPTH][TILE + 4];
    const int tid = threadIdx.y * SIDE + threadIdx.x;
    const int top = blockIdx.y * TILE, side = blockIdx.x * TILE;
    const int begin = blockIdx.z * part, end = min(K, begin + part);

    float from_left[LOADS], from_right[LOADS];
    auto fetch = [&](int k0) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int i = tid + l * THREADS;
            const int m = top + i / DEPTH, ka = k0 + i % DEPTH;
            from_left[l] = m < M && ka < end ? __half2float(a[size_t(m) * K + ka]) : 0.0f;
            const int kb = k0 + i / TILE, n = side + i % TILE;
            from_right[l] = kb < end && n < N ? __half2float(b[size_t(kb) * N + n]) : 0.0f;
        }
    };
    auto put = [&](int buffer) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int i = tid + l * THREADS;
            left[buffer][i % DEPTH][i / DEPTH] = from_left[l];
            right[buffer][i / TILE][i % TILE] = from_right[l];
        }
    };

    float acc[OWN][OWN] = {};
    fetch(begin);
    put(0);
    __syncthreads();
    int buffer = 0;
    for (int k0 = begin; k0 < end; k0 += DEPTH) {
        const bool more = k0 + DEPTH < end;
        if (more) fetch(k0 + DEPTH);
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            float x[OWN], y[OWN];
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                x[i] = left[buffer][d][threadIdx.y * OWN + i];
                y[i] = right[buffer][d][threadIdx.x * OWN + i];
            }
#pragma unroll
            for (int i = 0; i < OWN; ++i)
#pragma unroll
                for (int j = 0; j < OWN; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
        }
        if (more) {
            put(buffer ^ 1);
            __syncthreads();
            buffer ^= 1;
        }
    }

#pragma unroll
    for (int i = 0; i < OWN; ++i)
#pragma unroll
        for (int j = 0; j < OWN; ++j) {
            const int m = top + threadIdx.y * OWN + i, n = side + threadIdx.x * OWN + j;
            if (m < M && n < N) atomicAdd(&sums[size_t(m) * N + n], acc[i][j]);
        }
}

__global__ void round_sums(const float* __restrict__ sums, __half* __restrict__ out, int total) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    if (i + 1 < total) {
        const float2 two = *reinterpret_cast<const float2*>(sums + i);
        *reinterpret_cast<__half2*>(out + i) = __floats2half2_rn(two.x, two.y);
    } else if (i < total) {
        out[i] = __float2half(sums[i]);
    }
}
