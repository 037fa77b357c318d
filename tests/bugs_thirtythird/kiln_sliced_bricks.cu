/* evoengine
name: kiln_sliced_bricks
precision: fp16
summary: wmma strips; few tiles are multiplied in slices of the depth, and a second launch folds the slices
tunables:
  WARPS: [4, 8]          # a warp makes a strip of 16 rows and 64 columns
  SPLIT: [4, 1, 2, 8]    # most slices of the depth
let:
  TM: 16*WARPS
  GRID_M: ceil_div(M, TM)
  GRID_N: ceil_div(N, 64)
  STEPS: ceil_div(K, 32)
  SLICES: 1 if GRID_M*GRID_N >= 2*SM_COUNT else max(1, min(SPLIT, ceil_div(STEPS, 2)))
  STEPS_PER_SLICE: ceil_div(STEPS, SLICES)
scratch:
  bricks: {dtype: float32, shape: [SLICES, GRID_M*GRID_N, 64*TM]}
launches:
  - kernel: kiln_fire
    grid: [GRID_N, GRID_M, SLICES]
    block: [32*WARPS]
    args: [a, b, bricks, M, N, K, STEPS, STEPS_PER_SLICE]
  - kernel: kiln_fold
    grid: [GRID_N, GRID_M]
    block: [256]
    args: [bricks, out, M, N, SLICES]
*/
/*
 * kiln_fire   every block: one TILE_M x TILE_N brick of one slice of the depth, in fp32, stored whole (no tails:
 *             bricks are padded, and wmma can store them straight to global memory)
 * kiln_fold   every block: one brick; adds its slices up, rounds once, cuts the tails off
 */
#include <cuda_fp16.h>
#include <mma.h>
namespace wm = nvcuda::wmma;

#define TILE_M   (16 * WARPS)
#define TILE_N   64
#define TILE_K   32
#define NTHREADS (32 * WARPS)
#define PITCH_A  (TILE_K + 8)
#define PITCH_B  (TILE_N + 8)
#define BRICK    (TILE_M * TILE_N)

/* pieces of 8 halves that a thread carries from global to shared memory in a step */
#define CHUNKS_A (TILE_M * TILE_K / 8 / NTHREADS)
#define CHUNKS_B (TILE_K * TILE_N / 8 / NTHREADS)

typedef wm::fragment<wm::matrix_a, 16, 16, 16, __half, wm::row_major> FragA;
typedef wm::fragment<wm::matrix_b, 16, 16, 16, __half, wm::row_major> FragB;
typedef wm::fragment<wm::accumulator, 16, 16, 16, float> FragC;

union Piece {
    uint4 word;
    unsigned short bits[8];
};

/* 8 halves of row r from column c on; zeros where the matrix has none */
static __device__ __forceinline__ uint4 read_piece(const __half* p, int rows, int ld, int r, int c)
{
    Piece piece;
    piece.word = make_uint4(0u, 0u, 0u, 0u);
    if (r >= rows || c >= ld) return piece.word;
    const __half* src = p + (long long)r * ld + c;
    if ((ld & 7) == 0) return *(const uint4*)src;
    const int n = min(8, ld - c);
    for (int i = 0; i < 8; i++)
        if (i < n) piece.bits[i] = __half_as_ushort(src[i]);
    return piece.word;
}

__global__ void __launch_bounds__(NTHREADS)
kiln_fire(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ bricks,
          int M, int N, int K, int steps, int steps_per_slice)
{
    __shared__ __align__(128) __half sa[2][TILE_M * PITCH_A];
    __shared__ __align__(128) __half sb[2][TILE_K * PITCH_B];

    const int tid = threadIdx.x, warp = tid >> 5;
    const int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N;
    const int first = blockIdx.z * steps_per_slice;
    const int last = min(steps, first + steps_per_slice);    /* may be <= first: an empty slice stores zeros */

    uint4 ra[CHUNKS_A], rb[CHUNKS_B];

#define FETCH(step)                                                                              \
    do {                                                                                         \
        _Pragma("unroll")                                                                        \
        for (int i = 0; i < CHUNKS_A; i++) {                                                     \
            const int q = tid + i * NTHREADS;                                                    \
            ra[i] = read_piece(a, M, K, row0 + q / 4, (step) * TILE_K + q % 4 * 8);              \
        }                                                                                        \
        _Pragma("unroll")                                                                        \
        for (int i = 0; i < CHUNKS_B; i++) {                                                     \
            const int q = tid + i * NTHREADS;                                                    \
            rb[i] = read_piece(b, K, N, (step) * TILE_K + q / 8, col0 + q % 8 * 8);              \
        }                                                                                        \
    } while (0)

#define STASH(buf)                                                                               \
    do {                                                                                         \
        _Pragma("unroll")                                                                        \
        for (int i = 0; i < CHUNKS_A; i++) {                                                     \
            const int q = tid + i * NTHREADS;                                                    \
            *(uint4*)&sa[buf][q / 4 * PITCH_A + q % 4 * 8] = ra[i];                              \
        }                                                                                        \
        _Pragma("unroll")                                                                        \
        for (int i = 0; i < CHUNKS_B; i++) {                                                     \
            const int q = tid + i * NTHREADS;                                                    \
            *(uint4*)&sb[buf][q / 8 * PITCH_B + q % 8 * 8] = rb[i];                              \
        }                                                                                        \
    } while (0)

    FragC acc[TILE_N / 16];
#pragma unroll
    for (int j = 0; j < TILE_N / 16; j++) wm::fill_fragment(acc[j], 0.0f);

    if (first < last) {
        FETCH(first);
        STASH(0);
    }
    __syncthreads();

    for (int s = first; s < last; s++) {
        const int buf = (s - first) & 1;
        if (s + 1 < last) FETCH(s + 1);    /* in flight behind the products below */

#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            FragA fa;
            wm::load_matrix_sync(fa, &sa[buf][warp * 16 * PITCH_A + k], PITCH_A);
#pragma unroll
            for (int j = 0; j < TILE_N / 16; j++) {
                FragB fb;
                wm::load_matrix_sync(fb, &sb[buf][k * PITCH_B + j * 16], PITCH_B);
                wm::mma_sync(acc[j], fa, fb, acc[j]);
            }
        }

        if (s + 1 < last) STASH(buf ^ 1);
        __syncthreads();    /* the next buffer is full, this one is free */
    }

    const long long tile = blockIdx.y * gridDim.x + blockIdx.x;
    const long long tiles = gridDim.x * gridDim.y;
    float* brick = bricks + (blockIdx.z * tiles + tile) * BRICK + warp * 16 * TILE_N;
#pragma unroll
    for (int j = 0; j < TILE_N / 16; j++)
        wm::store_matrix_sync(brick + j * 16, acc[j], TILE_N, wm::mem_row_major);
}

__global__ void __launch_bounds__(256)
kiln_fold(const float* __restrict__ bricks, __half* __restrict__ out, int M, int N, int slices)
{
    const long long tile = blockIdx.y * gridDim.x + blockIdx.x;
    const long long tiles = gridDim.x * gridDim.y;
    const float4* own = (const float4*)(bricks + tile * BRICK);
    const long long stride = tiles * (BRICK / 4);    /* in float4: from a slice to the next */

    for (int i = threadIdx.x; i < BRICK / 4; i += 256) {
        float4 total = own[i];
        for (int z = 1; z < slices; z++) {
            const float4 more = own[z * stride + i];
            total.x += more.x;
            total.y += more.y;
            total.z += more.z;
            total.w += more.w;
        }
        const int row = blockIdx.y * TILE_M + i / (TILE_N / 4);
        const int col = blockIdx.x * TILE_N + i % (TILE_N / 4) * 4;
        if (row >= M) continue;
        __half* dst = out + (long long)row * N + col;
        const float v[4] = {total.x, total.y, total.z, total.w};
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (col + e < N) dst[e] = __float2half_rn(v[e]);
    }
}
