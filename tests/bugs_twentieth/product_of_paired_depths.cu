/* evoengine
name: product_of_paired_depths
precision: fp16
summary: outer products in registers from tiles that hold two depths in a word; blocks walk a grouped order of tiles
tunables:
  TILES_PER_BLOCK: [2, 1, 4]
  GROUP: [2, 1, 4]           # rows of tiles that are walked together, so that a tile of b serves them all from the L2 cache
let:
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 64)
launches:
  - kernel: pairedProduct
    grid: ["ceil_div(TILES_M*TILES_N, TILES_PER_BLOCK)"]
    block: [128]
    args: [a, b, out, M, N, K, TILES_M, TILES_N]
*/
// Every word of a tile has the halves of depths 2d and 2d + 1 of one row of `a` or one column of `b`: a thread reads
// four rows or columns of two depths with one 16-byte load, and computes 8 x 4 outputs from three of them.
#include <cuda_fp16.h>

constexpr int kTile = 64, kDepth = 32, kPairs = kDepth / 2, kThreads = 128;
constexpr int kPitch = kTile + 4;              // words; four more keep the rows apart in the banks and 16-byte aligned

struct Matrix {
    const __half* data;
    int rows, columns;

    __device__ unsigned bits(int row, int column) const {
        return row < rows && column < columns ? __half_as_ushort(data[size_t(row) * columns + column]) : 0u;
    }
    // Two neighbours of a row as one word; `column` is even.
    __device__ unsigned word(int row, int column) const {
        if (columns % 2 == 0) {
            if (row >= rows || column >= columns) return 0u;
            return *reinterpret_cast<const unsigned*>(data + size_t(row) * columns + column);
        }
        return bits(row, column) | bits(row, column + 1) << 16;
    }
};

__device__ __forceinline__ float2 unpackWord(unsigned word) { return __half22float2(*reinterpret_cast<const __half2*>(&word)); }

__device__ __forceinline__ void unpackFour(float2* to, const unsigned* from) {
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    to[0] = unpackWord(words.x);
    to[1] = unpackWord(words.y);
    to[2] = unpackWord(words.z);
    to[3] = unpackWord(words.w);
}

// The place of tile number `index`: down through a group of rows, then on to the next column.
__device__ __forceinline__ int2 placeOf(int index, int tilesM, int tilesN) {
    const int perGroup = GROUP * tilesN;
    const int firstRow = index / perGroup * GROUP, within = index % perGroup;
    const int height = min(GROUP, tilesM - firstRow);           // the last group may have fewer rows
    return make_int2(firstRow + within % height, within / height);
}

__global__ void __launch_bounds__(kThreads)
pairedProduct(const __half* __restrict__ aData, const __half* __restrict__ bData, __half* __restrict__ out, int M, int N, int K,
              int tilesM, int tilesN) {
    __shared__ __align__(16) unsigned aTile[kPairs][kPitch];
    __shared__ __align__(16) unsigned bTile[kPairs][kPitch];
    const Matrix a{aData, M, K}, b{bData, K, N};
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;     // 16 x 8 threads

    for (int index = blockIdx.x; index < tilesM * tilesN; index += gridDim.x) {
        const int2 place = placeOf(index, tilesM, tilesN);
        const int row0 = place.x * kTile, column0 = place.y * kTile;
        float sum[8][4] = {};

        for (int k = 0; k < K; k += kDepth) {
#pragma unroll 4
            for (int i = threadIdx.x; i < kTile * kPairs; i += kThreads) {
                const int pair = i % kPairs, row = i / kPairs;
                aTile[pair][row] = a.word(row0 + row, k + 2 * pair);
            }
#pragma unroll 4
            for (int i = threadIdx.x; i < kPairs * kTile / 2; i += kThreads) {
                const int pair = i / (kTile / 2), column = i % (kTile / 2) * 2;
                const unsigned upper = b.word(k + 2 * pair, column0 + column);
                const unsigned lower = b.word(k + 2 * pair + 1, column0 + column);
                // Two rows of two columns become two columns of two depths.
                bTile[pair][column] = __byte_perm(upper, lower, 0x5410);
                bTile[pair][column + 1] = __byte_perm(upper, lower, 0x7632);
            }
            __syncthreads();
#pragma unroll 4
            for (int pair = 0; pair < kPairs; ++pair) {
                float2 rows[8], columns[4];
                unpackFour(rows, &aTile[pair][ty * 4]);
                unpackFour(rows + 4, &aTile[pair][kTile / 2 + ty * 4]);
                unpackFour(columns, &bTile[pair][tx * 4]);
#pragma unroll
                for (int r = 0; r < 8; ++r)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        sum[r][c] = fmaf(rows[r].x, columns[c].x, sum[r][c]);
                        sum[r][c] = fmaf(rows[r].y, columns[c].y, sum[r][c]);
                    }
            }
            __syncthreads();             // all have read the tiles before they are filled again, for this output tile or the next
        }

        const int column = column0 + tx * 4;
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const int row = row0 + r / 4 * (kTile / 2) + ty * 4 + r % 4;
            if (row >= M) continue;
            __half* to = out + size_t(row) * N + column;
            if (N % 4 == 0 && column < N) {
                const __half2 pairs[2] = {__floats2half2_rn(sum[r][0], sum[r][1]), __floats2half2_rn(sum[r][2], sum[r][3])};
                *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pairs);
            } else {
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    if (column + c < N) to[c] = __float2half(sum[r][c]);
            }
        }
    }
}
