/* evoengine
name: adamw_locker_tiles
precision: fp32
summary: a block walks its own run of tiles; cp.async brings tile n + 1 into one locker while tile n is updated from the other
tunables:
  THREADS: [128, 64, 256]
  RUN: [4, 2, 8]               # tiles of a block, one after the other
let:
  TILE: 4 * THREADS
require:
  - THREADS % WARP_SIZE == 0
  - 2 * 4 * 4 * 4 * THREADS <= 48 * 1024
launches:
  - kernel: adamw_locker_tiles
    grid: ["ceil_div(N, TILE * RUN)"]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - rate
      - eps
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: 1 / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
*/

// The four tensors have a shelf each in a locker, and there are two lockers. Copies go 16 bytes a
// thread; the arithmetic goes a float a thread, THREADS apart, so that the stores of a warp are
// whole lines whatever N is. Hence a thread reads what other threads have copied.

constexpr int kTile = 4 * THREADS;

enum Tensor { kGradient, kParameter, kFirst, kSecond, kTensors };

struct Locker {
    float shelf[kTensors][kTile];
};

struct Rates {
    float rate, eps;
    float beta1, beta2;        // what is kept of the old moments
    float fresh1, fresh2;      // what is taken of the new gradient
    float shrink;              // decoupled weight decay
    float unbias1, unbias2;    // 1 / (1 - beta^step)
};

__device__ __forceinline__ void copy16(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void copy4(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void await_groups() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

// Starts the copies of one tile of `length` floats at `origin`.
__device__ __forceinline__ void fill(Locker& locker, const float* const (&source)[kTensors],
                                     long long origin, int length) {
    const int mine = 4 * threadIdx.x;
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
        float* to = &locker.shelf[t][mine];
        const float* from = source[t] + origin + mine;
        if (mine + 4 <= length) {
            copy16(to, from);
        } else {
            for (int j = 0; mine + j < length; ++j) copy4(to + j, from + j);
        }
    }
}

__device__ __forceinline__ void advance(float g, float& p, float& m, float& v, const Rates& r) {
    m = fmaf(r.beta1, m, r.fresh1 * g);
    v = fmaf(r.beta2, v, r.fresh2 * g * g);
    const float spread = sqrtf(v * r.unbias2) + r.eps;
    const float move = r.rate * (m * r.unbias1);
    p = p * r.shrink - move / spread;
}

extern "C" __global__ void __launch_bounds__(THREADS)
adamw_locker_tiles(const float* __restrict__ gradient, float* parameter, float* first, float* second,
                   int N, float rate, float eps, float beta1, float beta2, float fresh1, float fresh2,
                   float shrink, float unbias1, float unbias2) {
    __shared__ alignas(16) Locker lockers[2];
    const Rates rates = {rate, eps, beta1, beta2, fresh1, fresh2, shrink, unbias1, unbias2};
    const float* const source[kTensors] = {gradient, parameter, first, second};

    const long long start = static_cast<long long>(blockIdx.x) * RUN * kTile;
    const long long left = N - start;
    const int tiles = left >= static_cast<long long>(RUN) * kTile
                          ? RUN
                          : static_cast<int>((left + kTile - 1) / kTile);

    fill(lockers[0], source, start, static_cast<int>(min(left, static_cast<long long>(kTile))));
    close_group();

    for (int n = 0; n < tiles; ++n) {
        const long long origin = start + static_cast<long long>(n) * kTile;
        const int length = static_cast<int>(min(static_cast<long long>(kTile), N - origin));

        if (n + 1 < tiles) {
            const long long ahead = origin + kTile;
            fill(lockers[(n + 1) & 1], source, ahead,
                 static_cast<int>(min(static_cast<long long>(kTile), N - ahead)));
            close_group();
            await_groups<1>();   // all but the copies just started
        } else {
            await_groups<0>();   // nothing has been started after this tile
        }
        __syncthreads();   // what the other threads copied can be seen

        const Locker& here = lockers[n & 1];
        for (int i = threadIdx.x; i < length; i += THREADS) {
            float p = here.shelf[kParameter][i];
            float m = here.shelf[kFirst][i];
            float v = here.shelf[kSecond][i];
            advance(here.shelf[kGradient][i], p, m, v, rates);
            parameter[origin + i] = p;
            first[origin + i] = m;
            second[origin + i] = v;
        }
        __syncthreads();   // this locker is free for the tile after next
    }
}
