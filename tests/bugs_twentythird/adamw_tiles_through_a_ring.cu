/* evoengine
name: adamw_tiles_through_a_ring
precision: fp32
summary: few blocks walk over tiles of all four tensors, which asynchronous copies bring a few tiles ahead
tunables:
  THREADS: [128, 256, 64]
  STAGES: [3, 2, 4]            # tiles in shared memory at a time
  TILES_EACH: [3, 6, 2]        # of a block, at least: copies need work to hide behind
let:
  TILE: 4 * THREADS
  TILES: ceil_div(N, TILE)
require:
  - 16 * TILE * STAGES <= MAX_SHARED_BYTES
launches:
  - kernel: adamw_tiles
    grid: ["min(4 * SM_COUNT, ceil_div(TILES, TILES_EACH))"]
    block: [THREADS]
    shared: 16 * TILE * STAGES
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - {value: 1 - beta1, dtype: float32}   # here, because 1 - beta2 in single precision loses digits
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

// One step of AdamW. A thread copies 16 bytes of every tensor of a tile, but updates elements that lie
// THREADS apart, so that results go straight to memory a word a thread and the end of the tensors needs
// no code of its own.

constexpr int kTile = 4 * THREADS;
enum Tensor { kGradient, kParameter, kFirst, kSecond, kTensors };

// Sixteen bytes to shared memory, of which only the first `bytes` are read; the others become zero.
__device__ __forceinline__ void copyAsync(float* to, const float* from, int bytes) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void closeGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kOpen> __device__ __forceinline__ void waitForGroups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

struct TileWalk {
    const float* source[kTensors];
    float* ring;
    long long size;

    __device__ __forceinline__ long long start(int turn) const {
        return (blockIdx.x + static_cast<long long>(turn) * gridDim.x) * kTile;
    }

    __device__ __forceinline__ float* slot(int turn) const { return ring + (turn % STAGES) * kTensors * kTile; }

    // A group is closed also where nothing is left to copy: groups are counted by turns.
    __device__ __forceinline__ void fetch(int turn) const {
        const long long offset = start(turn) + 4 * threadIdx.x;
        const long long left = size - offset;
        const int bytes = left >= 4 ? 16 : left > 0 ? static_cast<int>(4 * left) : 0;
        float* to = slot(turn) + 4 * threadIdx.x;
#pragma unroll
        for (int t = 0; t < kTensors; ++t) copyAsync(to + t * kTile, source[t] + (bytes > 0 ? offset : 0), bytes);
        closeGroup();
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
adamw_tiles(const float* gradient, float* parameter, float* first, float* second, int N, float rest1, float rest2,
            float keep, float pace, float unbias, float eps) {
    extern __shared__ __align__(16) float ring[];
    const TileWalk walk = {{gradient, parameter, first, second}, ring, N};
    const int tiles = (N + kTile - 1) / kTile;
    const int turns = (tiles - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);

#pragma unroll
    for (int turn = 0; turn < STAGES - 1; ++turn) walk.fetch(turn);

    for (int turn = 0; turn < turns; ++turn) {
        waitForGroups<STAGES - 2>();
        // Everyone's part of this tile is there, and everyone has left the slot that is filled next.
        __syncthreads();
        walk.fetch(turn + STAGES - 1);

        const float* tile = walk.slot(turn);
        const long long base = walk.start(turn);
#pragma unroll
        for (int at = threadIdx.x; at < kTile; at += THREADS) {
            if (base + at >= N) break;
            const float g = tile[kGradient * kTile + at], p = tile[kParameter * kTile + at];
            const float m = tile[kFirst * kTile + at], v = tile[kSecond * kTile + at];
            const float newFirst = fmaf(rest1, g - m, m);
            const float newSecond = fmaf(rest2, g * g - v, v);
            const float size = sqrtf(newSecond * unbias) + eps;
            parameter[base + at] = keep * p - pace * newFirst / size;
            first[base + at] = newFirst;
            second[base + at] = newSecond;
        }
    }
    waitForGroups<0>();
}
