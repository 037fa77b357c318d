/* evoengine
name: tannery_mma_slices
precision: fp16
summary: mma.sync m16n8k16, the depth cut into slices, float partial products that a second launch adds
tunables:
  SLICES: [2, 1, 4]
  MERGE_THREADS: [256, 128]
let:
  SLICE: 32 * ceil_div(K, 32 * SLICES)
scratch:
  partial: {dtype: float32, shape: [SLICES, M, N]}
launches:
  - kernel: slice_product
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SLICES]
    block: [128]
    args: [a, b, partial, M, N, K, SLICE]
  - kernel: merge_slices
    grid: ["min(ceil_div(M * N, MERGE_THREADS), 8 * SM_COUNT)"]
    block: [MERGE_THREADS]
    args: [partial, out, M * N]
*/
#include <cuda_fp16.h>

#define TILE 64
#define DEPTH 32
#define PITCH (DEPTH + 8)
#define PIECES (TILE * DEPTH / 8 / 128) /* groups of eight halves that a thread moves per operand */

typedef unsigned int u32;

struct Piece {
    __half h[8];
};

// Eight halves of one row, zero where the matrix or the slice ends.
__device__ Piece load_piece(const __half* m, int ld, int row, int row_end, int col, int col_end) {
    Piece p;
    if (row < row_end && col + 8 <= col_end && ld % 8 == 0) {
        *reinterpret_cast<uint4*>(p.h) = *reinterpret_cast<const uint4*>(m + (size_t)row * ld + col);
    } else {
        for (int i = 0; i < 8; ++i)
            p.h[i] = (row < row_end && col + i < col_end) ? m[(size_t)row * ld + col + i] : __half(0.0f);
    }
    return p;
}

__device__ u32 pair_at(const __half* p) { return *reinterpret_cast<const u32*>(p); }

__device__ void mma_16816(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* blockIdx.z is the slice of the depth. Warp w owns the rows 16w .. 16w+15 of the tile and all its 64 columns.
   `b` lies transposed in shared memory, so that two neighbours in depth are one register. */
extern "C" __global__ void __launch_bounds__(128)
slice_product(const __half* a, const __half* b, float* partial, int M, int N, int K, int slice) {
    __shared__ __align__(16) __half As[TILE * PITCH];
    __shared__ __align__(16) __half Bt[TILE * PITCH];

    const int t = threadIdx.x, warp = t >> 5, lane = t & 31;
    const int quad = lane >> 2, in_quad = lane & 3;
    const int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE;
    const int k_begin = blockIdx.z * slice;
    const int k_end = min(K, k_begin + slice);

    float acc[8][4] = {};
    Piece next_a[PIECES], next_b[PIECES];

    auto fetch = [&](int k0) {
        for (int p = 0; p < PIECES; ++p) {
            const int id = t + 128 * p;
            next_a[p] = load_piece(a, K, m0 + id / 4, M, k0 + id % 4 * 8, k_end);
            next_b[p] = load_piece(b, N, k0 + id / 8, k_end, n0 + id % 8 * 8, N);
        }
    };

    if (k_begin < k_end) fetch(k_begin);
    for (int k0 = k_begin; k0 < k_end; k0 += DEPTH) {
        // registers -> shared memory
        for (int p = 0; p < PIECES; ++p) {
            const int id = t + 128 * p;
            *reinterpret_cast<uint4*>(&As[id / 4 * PITCH + id % 4 * 8]) = *reinterpret_cast<uint4*>(next_a[p].h);
            for (int i = 0; i < 8; ++i) Bt[(id % 8 * 8 + i) * PITCH + id / 8] = next_b[p].h[i];
        }
        __syncthreads();  // tile is ready

        if (k0 + DEPTH < k_end) fetch(k0 + DEPTH);  // in flight during the products

        for (int kk = 0; kk < DEPTH; kk += 16) {
            const __half* left = &As[(warp * 16 + quad) * PITCH + kk + in_quad * 2];
            const u32 fa[4] = {pair_at(left), pair_at(left + 8 * PITCH), pair_at(left + 8), pair_at(left + 8 * PITCH + 8)};
            for (int n = 0; n < 8; ++n) {
                const __half* right = &Bt[(n * 8 + quad) * PITCH + kk + in_quad * 2];
                mma_16816(acc[n], fa, pair_at(right), pair_at(right + 8));
            }
        }
        __syncthreads();  // tile is consumed
    }

    float* mine = partial + (size_t)blockIdx.z * M * N;
    for (int n = 0; n < 8; ++n) {
        for (int e = 0; e < 4; ++e) {
            const int row = m0 + warp * 16 + quad + e / 2 * 8;
            const int col = n0 + n * 8 + in_quad * 2 + e % 2;
            if (row < M && col < N) mine[(size_t)row * N + col] = acc[n][e];
        }
    }
}

extern "C" __global__ void merge_slices(const float* partial, __half* out, int total) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        float sum = 0.0f;
        for (int s = 0; s < SLICES; ++s) sum += partial[(size_t)s * total + i];
        out[i] = __float2half_rn(sum);
    }
}
