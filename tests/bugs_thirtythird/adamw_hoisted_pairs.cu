/* evoengine
name: adamw_hoisted_pairs
precision: fp32
summary: even warps hoist gradients and odd warps second moments through a ring of cp.async stages; parameter and first moment travel in registers
tunables:
  THREADS: [128, 256]
  STAGES: [3, 2, 4]            # slots of the ring
  RUN: [4, 2, 8]               # tiles that a block takes in a row
let:
  TILE: 4 * THREADS
require:
  - THREADS % (2 * WARP_SIZE) == 0
  - STAGES * THREADS * 32 <= 49152
launches:
  - kernel: hoisted_adamw
    grid: ["ceil_div(N, TILE * RUN)"]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

// The update of N parameters, in tiles of 4 * THREADS. Two of the four input streams are only read
// late in an iteration's arithmetic, so they are brought in asynchronously:
//
//   ring slot s:  pairs[s].gradient[THREADS]   float4 each, written by the even warps
//                 pairs[s].second[THREADS]     float4 each, written by the odd warps
//
// One half of the block fetches one stream, two vectors a thread, so a thread computes with vectors
// that a neighbouring warp has fetched. The other two streams are plain 16 byte loads, issued before
// the wait for the ring. The last vector of the array may be cut: copies fill it up with zeros.

constexpr int kTile = 4 * THREADS;
constexpr int kHalf = THREADS / 2;

struct Pairs {
    float4 gradient[THREADS];
    float4 second[THREADS];
};

struct Recipe {
    float beta1, beta2;
    float fresh1, fresh2;      // 1 - beta1, 1 - beta2
    float keep;                // what weight decay leaves of a parameter
    float pace;                // the rate over the correction of the first moment
    float unbias;              // one over the correction of the second moment
    float eps;
};

__device__ __forceinline__ void hoist16(float4* to, const float* from, int bytes) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void await_groups() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

// Both vectors of this thread for the tile that begins at `begin`.
__device__ __forceinline__ void hoist(Pairs& slot, const float* gradient, const float* second, long long begin,
                                      int N) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool even = warp % 2 == 0;
    const float* source = even ? gradient : second;
    float4* target = even ? slot.gradient : slot.second;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int place = h * kHalf + warp / 2 * 32 + lane;
        const long long at = begin + 4LL * place;
        const long long left = N - at;
        const int bytes = left >= 4 ? 16 : left > 0 ? static_cast<int>(left) * 4 : 0;
        hoist16(target + place, bytes > 0 ? source + at : source, bytes);
    }
}

__device__ __forceinline__ float4 take(const float* source, long long at, int N) {
    if (at + 4 <= N) return *reinterpret_cast<const float4*>(source + at);
    float4 some = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (at < N) some.x = source[at];
    if (at + 1 < N) some.y = source[at + 1];
    if (at + 2 < N) some.z = source[at + 2];
    return some;
}

__device__ __forceinline__ void put(float* target, long long at, int N, float4 value) {
    if (at + 4 <= N) {
        *reinterpret_cast<float4*>(target + at) = value;
        return;
    }
    const float parts[3] = {value.x, value.y, value.z};
#pragma unroll
    for (int j = 0; j < 3; ++j)
        if (at + j < N) target[at + j] = parts[j];
}

__device__ __forceinline__ void advance(const Recipe& r, float g, float& p, float& m, float& v) {
    m = r.beta1 * m + r.fresh1 * g;
    v = r.beta2 * v + r.fresh2 * g * g;
    const float size = sqrtf(v * r.unbias) + r.eps;
    p = p * r.keep - r.pace * m / size;
}

extern "C" __global__ void __launch_bounds__(THREADS)
hoisted_adamw(const float* __restrict__ gradient, float* parameter, float* first, float* second, int N,
              float beta1, float beta2, float fresh1, float fresh2, float keep, float pace, float unbias,
              float eps) {
    __shared__ Pairs pairs[STAGES];
    const Recipe recipe{beta1, beta2, fresh1, fresh2, keep, pace, unbias, eps};

    const int tiles = (N + kTile - 1) / kTile;
    const int from = blockIdx.x * RUN;
    const int count = min(RUN, tiles - from);
    const long long origin = static_cast<long long>(from) * kTile;

#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < count) hoist(pairs[s], gradient, second, origin + static_cast<long long>(s) * kTile, N);
        close_group();   // empty groups keep the count of the waits right
    }

    for (int k = 0; k < count; ++k) {
        const long long at = origin + static_cast<long long>(k) * kTile + 4 * threadIdx.x;
        float4 p = take(parameter, at, N);
        float4 m = take(first, at, N);

        await_groups<STAGES - 2>();
        __syncthreads();   // tile k is here for all, and the slot of tile k - 1 is free

        const int ahead = k + STAGES - 1;
        if (ahead < count)
            hoist(pairs[ahead % STAGES], gradient, second, origin + static_cast<long long>(ahead) * kTile, N);
        close_group();

        const Pairs& slot = pairs[k % STAGES];
        const float4 g = slot.gradient[threadIdx.x];
        float4 v = slot.second[threadIdx.x];
        advance(recipe, g.x, p.x, m.x, v.x);
        advance(recipe, g.y, p.y, m.y, v.y);
        advance(recipe, g.z, p.z, m.z, v.z);
        advance(recipe, g.w, p.w, m.w, v.w);

        put(parameter, at, N, p);
        put(first, at, N, m);
        put(second, at, N, v);
    }
}
