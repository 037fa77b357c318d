/* evoengine
name: matmul_supertile_ring
precision: fp16
summary: 64 x 64 tiles in grouped order, several a block; a ring of swizzled stages, ldmatrix and mma.sync
tunables:
  STAGES: [3, 2, 4]        # steps along K that have room in shared memory
  GROUP: [4, 8, 1]         # rows of tiles that are walked together, so that they share columns of b in L2
  TILES_EACH: [2, 1, 4]    # tiles that a block computes one after the other
let:
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 64)
  ALIGNED: 1 if K % 8 == 0 and N % 8 == 0 else 0
launches:
  - kernel: matmul<ALIGNED>
    grid: ["ceil_div(TILES_M * TILES_N, TILES_EACH)"]
    block: [128]
    shared: STAGES * 8192
    args: [a, b, out, M, N, K, TILES_M, TILES_N]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 32, THREADS = 128;
constexpr int STAGE_A = TILE * DEPTH, STAGE = STAGE_A + DEPTH * TILE;   // in halves

// Where 16-byte piece `p` of a row stands in its tile. Rows of `a` are 64 bytes long, so two of them
// fill the banks once, and rows of `b` 128 bytes: the eight rows that ldmatrix reads never collide.
__device__ __forceinline__ int spot_a(int row, int p) { return row * DEPTH + (p ^ ((row >> 1) & 3)) * 8; }
__device__ __forceinline__ int spot_b(int row, int p) { return STAGE_A + row * TILE + (p ^ (row & 7)) * 8; }

__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Copies eight halves from (row, column) of a matrix to shared memory, zeros where they are outside.
template <int ALIGNED>
__device__ __forceinline__ void copy_piece(__half* to, const __half* __restrict__ matrix, int rows, int columns, int row, int column) {
    if (ALIGNED) {
        const bool inside = row < rows && column < columns;
        const __half* from = inside ? matrix + size_t(row) * columns + column : matrix;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
        __align__(16) __half piece[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            piece[i] = row < rows && column + i < columns ? matrix[size_t(row) * columns + column + i] : __half(0.0f);
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<uint4*>(piece);
    }
}

// Row and column of a tile, in tiles. Inside of a group of tile rows the order is column after column;
// the last group may have fewer rows than the others.
__device__ __forceinline__ int2 place_of(int tile, int tiles_m, int tiles_n) {
    const int first = tile / (GROUP * tiles_n) * GROUP, inside = tile % (GROUP * tiles_n);
    const int height = min(GROUP, tiles_m - first);
    return make_int2(first + inside % height, inside / height);
}

__device__ __forceinline__ void load_rows(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)) : "memory");
}

__device__ __forceinline__ void load_columns(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int ALIGNED>
__global__ void __launch_bounds__(THREADS)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K, int tiles_m, int tiles_n) {
    extern __shared__ __align__(128) __half ring[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;     // a warp has 32 x 32 of the tile
    const int steps = (K + DEPTH - 1) / DEPTH;
    float sum[2][4][4] = {};

    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
        const int2 place = place_of(tile, tiles_m, tiles_n);
        const int block_m = place.x * TILE, block_n = place.y * TILE;
        // A group of copies is committed for every step, with or without copies, so that counts of groups are counts of steps.
        auto fill = [&](int step) {
            if (step < steps) {
                __half* stage = ring + step % STAGES * STAGE;
                for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += THREADS)
                    copy_piece<ALIGNED>(stage + spot_a(i / 4, i % 4), a, M, K, block_m + i / 4, step * DEPTH + i % 4 * 8);
                for (int i = threadIdx.x; i < DEPTH * TILE / 8; i += THREADS)
                    copy_piece<ALIGNED>(stage + spot_b(i / 8, i % 8), b, K, N, step * DEPTH + i / 8, block_n + i % 8 * 8);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        };

        for (int s = 0; s < STAGES - 1; ++s) fill(s);
        for (int step = 0; step < steps; ++step) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();              // this step has come for all, and all have read the stage of the step before
            fill(step + STAGES - 1);
            const __half* stage = ring + step % STAGES * STAGE;
#pragma unroll
            for (int k = 0; k < DEPTH; k += 16) {
                unsigned rows[2][4], columns[2][4];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    load_rows(rows[i], stage + spot_a(warp_m + i * 16 + lane % 16, k / 8 + lane / 16));
                    load_columns(columns[i], stage + spot_b(k + lane % 16, warp_n / 8 + i * 2 + lane / 16));
                }
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) multiply(sum[i][j], rows[i], columns[j / 2][j % 2 * 2], columns[j / 2][j % 2 * 2 + 1]);
            }
        }
        __syncthreads();                  // all have read the last stages before the next tile fills them

#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int row = block_m + warp_m + i * 16 + half * 8 + lane / 4;
                    const int column = block_n + warp_n + j * 8 + lane % 4 * 2;
                    __half* to = out + size_t(row) * N + column;
                    const __half2 pair = __floats2half2_rn(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
                    sum[i][j][half * 2] = sum[i][j][half * 2 + 1] = 0.0f;     // the next tile begins anew
                    if (row < M && column + 1 < N && N % 2 == 0) {
                        *reinterpret_cast<__half2*>(to) = pair;
                    } else if (row < M) {
                        if (column < N) to[0] = __low2half(pair);
                        if (column + 1 < N) to[1] = __high2half(pair);
                    }
                }
    }
}
