/* evoengine
name: nearest_packed_minimum
precision: fp32
summary: tiles of 32 points against tiles of 32 centroids; square and id in one number of 64 bits, whose minimum is taken by shuffles and atomics; a second launch takes it apart
tunables:
  SHARES: [2, 1, 3]
scratch:
  best: {dtype: int64, shape: [N], init: -1}   # all bits: the largest unsigned number
launches:
  - kernel: search
    grid: ["ceil_div(N, 32)", SHARES]
    block: [16, 16]
    args: [points, centroids, best, N, K, D]
  - kernel: take_apart
    grid: ["ceil_div(N, 128)"]
    block: [128]
    args: [best, ids, distance, N]
*/

typedef unsigned long long Packed;
constexpr int TILE = 32, DEPTH = 16;

__global__ void __launch_bounds__(256)
search(const float* __restrict__ points, const float* __restrict__ centroids, Packed* __restrict__ best,
       int N, int K, int D) {
    __shared__ float mine[DEPTH][TILE + 1], theirs[DEPTH][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const int first = blockIdx.x * TILE;

    Packed least[2] = {~0ull, ~0ull};
    float squares[2][2] = {};   // points ty and ty + 16, centroids tx and tx + 16
    for (int start = blockIdx.y * TILE; start < K; start += gridDim.y * TILE) {
        for (int d0 = 0; d0 < D; d0 += DEPTH) {
            for (int i = thread; i < TILE * DEPTH; i += 256) {
                const int r = i / DEPTH, d = i % DEPTH;
                mine[d][r] = first + r < N && d0 + d < D ? points[size_t(first + r) * D + d0 + d] : 0.0f;
                theirs[d][r] = start + r < K && d0 + d < D ? centroids[size_t(start + r) * D + d0 + d] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int d = 0; d < DEPTH; ++d)
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const float way = mine[d][ty + 16 * i] - theirs[d][tx + 16 * j];
                        squares[i][j] = fmaf(way, way, squares[i][j]);
                    }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int id = start + tx + 16 * j;
                // squares are not negative, so their bits have the order of the numbers
                const Packed packed = Packed(__float_as_uint(squares[i][j])) << 32 | unsigned(id);
                if (id < K) least[i] = min(least[i], packed);
                squares[i][j] = 0.0f;
            }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int offset = 8; offset > 0; offset /= 2)
            least[i] = min(least[i], __shfl_xor_sync(0xffffffffu, least[i], offset));
        const int point = first + ty + 16 * i;
        if (tx == 0 && point < N) atomicMin(best + point, least[i]);
    }
}

__global__ void take_apart(const Packed* __restrict__ best, int* __restrict__ ids,
                           float* __restrict__ distance, int N) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    ids[i] = int(best[i] & 0xffffffffu);
    distance[i] = __uint_as_float(unsigned(best[i] >> 32));
}
