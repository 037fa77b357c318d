/* evoengine
name: matmul_resident_tiles
precision: fp16
summary: a few resident blocks walk over tiles of 64 x 64 with mma.sync; the next step's halves wait in registers while a tile in shared memory is multiplied
let:
  COLUMNS: ceil_div(N, 64)
  TILES: COLUMNS * ceil_div(M, 64)
  V: 8 if N % 8 == 0 and K % 8 == 0 else 1
launches:
  - kernel: multiply<V>
    grid: ["min(TILES, SM_COUNT if M*N >= 1048576 else 3)"]
    block: [128]
    args: [a, b, out, M, N, K, COLUMNS, TILES]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 32, THREADS = 128, PITCH_A = DEPTH + 8, PITCH_B = TILE + 8;

__device__ __forceinline__ void load_four(unsigned (&r)[4], const half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void load_four_turned(unsigned (&r)[4], const half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Eight halves of a row, zeros where the matrix ends.
template <int V>
__device__ __forceinline__ uint4 eight(const half* matrix, int rows, int columns, int row, int column) {
    uint4 piece = make_uint4(0, 0, 0, 0);
    if (row >= rows) return piece;
    if (V == 8) {
        if (column < columns) piece = *reinterpret_cast<const uint4*>(matrix + size_t(row) * columns + column);
    } else {
        half* halves = reinterpret_cast<half*>(&piece);
        for (int e = 0; e < 8; ++e)
            if (column + e < columns) halves[e] = matrix[size_t(row) * columns + column + e];
    }
    return piece;
}

template <int V>
__global__ void __launch_bounds__(THREADS)
multiply(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K,
         int columns, int tiles) {
    __shared__ __align__(16) half left[2][TILE][PITCH_A];
    __shared__ __align__(16) half right[2][DEPTH][PITCH_B];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    uint4 next_a[2], next_b[2];
    float sum[2][4][4] = {};
    int stage = 0;

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int first_row = tile / columns * TILE, first_column = tile % columns * TILE;
        auto fetch = [&](int from) {
            for (int i = 0; i < 2; ++i) {
                const int n = i * THREADS + threadIdx.x;
                next_a[i] = eight<V>(a, M, K, first_row + n / 4, from + n % 4 * 8);
                next_b[i] = eight<V>(b, K, N, from + n / 8, first_column + n % 8 * 8);
            }
        };
        auto keep = [&](int stage) {
            for (int i = 0; i < 2; ++i) {
                const int n = i * THREADS + threadIdx.x;
                *reinterpret_cast<uint4*>(&left[stage][n / 4][n % 4 * 8]) = next_a[i];
                *reinterpret_cast<uint4*>(&right[stage][n / 8][n % 8 * 8]) = next_b[i];
            }
        };

        fetch(0);
        keep(stage);
        __syncthreads();
        for (int from = 0; from < K; from += DEPTH, stage ^= 1) {
            if (from + DEPTH < K) fetch(from + DEPTH);
            for (int d = 0; d < DEPTH; d += 16) {
                unsigned x[2][4];
                for (int i = 0; i < 2; ++i)
                    load_four(x[i], &left[stage][warp_row + i * 16 + lane % 16][d + lane / 16 * 8]);
                for (int j = 0; j < 2; ++j) {
                    unsigned y[4];
                    load_four_turned(y, &right[stage][d + lane % 16][warp_column + j * 16 + lane / 16 * 8]);
                    for (int i = 0; i < 2; ++i) {
                        multiply_add(sum[i][j * 2], x[i], y[0], y[1]);
                        multiply_add(sum[i][j * 2 + 1], x[i], y[2], y[3]);
                    }
                }
            }
            if (from + DEPTH < K) keep(stage ^ 1);
            __syncthreads();
        }

        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j)
                for (int e = 0; e < 4; ++e) {
                    const int row = first_row + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                    const int column = first_column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
                    if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sum[i][j][e]);
                    sum[i][j][e] = 0.0f;   // for the next tile
                }
    }
}
