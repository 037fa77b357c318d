/* evoengine
name: layernormWarpShares
precision: fp32
summary: each warp keeps a share of the row in shared memory, copied one row ahead; moments are merged
tunables:
  WARPS: [4, 8, 2]
  ROWS: [4, 2, 8]              # rows of a block, one after the other
  VECTOR: [4, 2, 1]            # floats per load where C is a multiple of it
let:
  V: VECTOR if C % VECTOR == 0 else 1
  SHARE: V * ceil_div(C // V, WARPS)   # columns of a warp; the last warps may have fewer or none
  PITCH: round_up(SHARE, 4)            # places for them, so that each share begins on 16 bytes
require:
  - 8 * WARPS * PITCH <= MAX_SHARED_BYTES
launches:
  - kernel: normaliseShares<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [WARP_SIZE, WARPS]
    shared: 2 * 4 * WARPS * PITCH      # two rows
    args: [x, weight, bias, out, N, C, SHARE, PITCH, eps]
*/
#include <cooperative_groups.h>

// Layer normalisation of rows. Each warp finds the mean of its share and the squares around that mean,
// and the shares of a row are merged as Chan, Golub and LeVeque do: no large sum of squares is made
// smaller again, so a large mean costs no accuracy.

namespace cg = cooperative_groups;
using Tile = cg::thread_block_tile<32>;

template <int V> struct alignas(4 * V) Chunk { float f[V]; };

struct Moments { float count, mean, squares; };

__device__ __forceinline__ float sumOfTile(const Tile& tile, float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) value += tile.shfl_xor(value, offset);
    return value;
}

// The moments of two disjoint sets of values together.
__device__ __forceinline__ Moments mergeMoments(const Moments& a, const Moments& b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + delta * part, a.squares + b.squares + delta * delta * a.count * part};
}

template <int V> __device__ __forceinline__ void copyAsync(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(address), "l"(from), "n"(4 * V) : "memory");
}

template <int V>
__global__ void __launch_bounds__(32 * WARPS)
normaliseShares(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                float* __restrict__ out, int N, int C, int share, int pitch, float eps) {
    extern __shared__ __align__(16) float rowBuffers[];   // [2][WARPS][pitch]
    __shared__ Moments shareMoments[2][WARPS];

    const Tile tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int lane = tile.thread_rank(), warp = threadIdx.y;
    const int start = warp * share;
    const int size = max(0, min(share, C - start));
    const int firstRow = blockIdx.x * ROWS, lastRow = min(firstRow + ROWS, N);
    using Vec = Chunk<V>;

    auto request = [&](int row) {
        if (row < lastRow) {
            const float* source = x + static_cast<long long>(row) * C + start;
            float* kept = rowBuffers + ((row & 1) * WARPS + warp) * pitch;
            for (int i = lane * V; i < size; i += 32 * V) copyAsync<V>(kept + i, source + i);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    request(firstRow);
    for (int row = firstRow; row < lastRow; ++row) {
        request(row + 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        tile.sync();   // a warp reads only what its own lanes have copied

        const float* kept = rowBuffers + ((row & 1) * WARPS + warp) * pitch;
        float sum = 0.0f;
        for (int i = lane * V; i < size; i += 32 * V) {
            const Vec v = *reinterpret_cast<const Vec*>(kept + i);
#pragma unroll
            for (int j = 0; j < V; ++j) sum += v.f[j];
        }
        const float divisor = static_cast<float>(max(size, 1));
        const float roughMean = sumOfTile(tile, sum) / divisor;

        // The mean is rounded, so deviations from it do not quite add up to zero; what is left corrects it.
        float deviations = 0.0f, squares = 0.0f;
        for (int i = lane * V; i < size; i += 32 * V) {
            const Vec v = *reinterpret_cast<const Vec*>(kept + i);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = v.f[j] - roughMean;
                deviations += d;
                squares = fmaf(d, d, squares);
            }
        }
        const float drift = sumOfTile(tile, deviations) / divisor;
        const float around = sumOfTile(tile, squares) - drift * drift * size;
        if (lane == 0) shareMoments[row & 1][warp] = {static_cast<float>(size), roughMean + drift, around};
        __syncthreads();   // the only one of a row: the next row writes its moments to the other places

        Moments whole = shareMoments[row & 1][0];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) whole = mergeMoments(whole, shareMoments[row & 1][w]);
        const float scale = 1.0f / sqrtf(fmaxf(whole.squares, 0.0f) / C + eps);

        float* target = out + static_cast<long long>(row) * C + start;
        for (int i = lane * V; i < size; i += 32 * V) {
            const Vec v = *reinterpret_cast<const Vec*>(kept + i);
            const Vec w = *reinterpret_cast<const Vec*>(weight + start + i);
            const Vec b = *reinterpret_cast<const Vec*>(bias + start + i);
            Vec y;
#pragma unroll
            for (int j = 0; j < V; ++j) y.f[j] = fmaf((v.f[j] - whole.mean) * scale, w.f[j], b.f[j]);
            *reinterpret_cast<Vec*>(target + i) = y;
        }
        tile.sync();   // before the copies of the row after the next come into this buffer
    }
}
