/* evoengine
name: matmul_paired_depth
precision: fp16
summary: tiles of 64 x 64 with mma.sync; the left operand goes straight to registers, the right one lies in two stages of shared memory as words of two neighbours in depth
let:
  EVEN: 1 if K % 2 == 0 else 0
launches:
  - kernel: multiply_tiles<EVEN>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, TILE = 64, DEPTH = 32, PAIRS = DEPTH / 2, PITCH = TILE + 8;
constexpr int OWN = PAIRS * TILE / 2 / THREADS;   // pairs of columns that a thread stages of a slice

__device__ __forceinline__ unsigned bits(__half2 pair) { return *reinterpret_cast<const unsigned*>(&pair); }

__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two neighbours of a row of a matrix, zeros outside; at once where all rows begin at an even place.
__device__ __forceinline__ __half2 neighbours(const __half* __restrict__ matrix, int row, int column, int rows,
                                              int columns, bool even) {
    const __half zero = __float2half(0.0f);
    if (row >= rows || column >= columns) return __half2half2(zero);
    const __half* from = matrix + size_t(row) * columns + column;
    if (even) return *reinterpret_cast<const __half2*>(from);
    return __halves2half2(from[0], column + 1 < columns ? from[1] : zero);
}

template <int EVEN>
__global__ void __launch_bounds__(THREADS)
multiply_tiles(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ unsigned right[2][PAIRS][PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int top = blockIdx.y * TILE + warp * 16 + group, left = blockIdx.x * TILE;
    const int slices = (K + DEPTH - 1) / DEPTH;

    float sum[TILE / 8][4] = {};
    __half2 upper[OWN], lower[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        const int place = threadIdx.x + i * THREADS, pair = place / (TILE / 2), column = left + place % (TILE / 2) * 2;
        upper[i] = neighbours(b, pair * 2, column, K, N, N % 2 == 0);
        lower[i] = neighbours(b, pair * 2 + 1, column, K, N, N % 2 == 0);
    }
    for (int slice = 0; slice < slices; ++slice) {
        const int stage = slice % 2;
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const int place = threadIdx.x + i * THREADS;
            *reinterpret_cast<uint2*>(&right[stage][place / (TILE / 2)][place % (TILE / 2) * 2]) =
                make_uint2(bits(__lows2half2(upper[i], lower[i])), bits(__highs2half2(upper[i], lower[i])));
        }
        __syncthreads();   // the other stage is written next, which all have used by now
        if (slice + 1 < slices) {
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int place = threadIdx.x + i * THREADS, column = left + place % (TILE / 2) * 2;
                const int depth = (slice + 1) * DEPTH + place / (TILE / 2) * 2;
                upper[i] = neighbours(b, depth, column, K, N, N % 2 == 0);
                lower[i] = neighbours(b, depth + 1, column, K, N, N % 2 == 0);
            }
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            unsigned row[4];
#pragma unroll
            for (int e = 0; e < 4; ++e)
                row[e] = bits(neighbours(a, top + e % 2 * 8, slice * DEPTH + step * 16 + e / 2 * 8 + quad * 2, M, K, EVEN));
#pragma unroll
            for (int j = 0; j < TILE / 8; ++j)
                multiply(sum[j], row, right[stage][step * 8 + quad][j * 8 + group],
                         right[stage][step * 8 + quad + 4][j * 8 + group]);
        }
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int m = top + h * 8;
        if (m >= M) continue;
#pragma unroll
        for (int j = 0; j < TILE / 8; ++j) {
            const int n = left + j * 8 + quad * 2;
            const __half2 pair = __floats2half2_rn(sum[j][h * 2], sum[j][h * 2 + 1]);
            __half* to = out + size_t(m) * N + n;
            if (N % 2 == 0 && n < N) {
                *reinterpret_cast<__half2*>(to) = pair;
            } else {
                if (n < N) to[0] = __low2half(pair);
                if (n + 1 < N) to[1] = __high2half(pair);
            }
        }
    }
}
