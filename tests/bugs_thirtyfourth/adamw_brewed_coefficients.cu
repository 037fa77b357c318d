/* evoengine
name: adamw_brewed_coefficients
precision: fp32
summary: a small launch brews the coefficients, then blocks pull four tensors through a ring of tiles
tunables:
  THREADS: [128, 256]
  STAGES: [3, 2]
  RUN: [4, 2, 8]               # tiles a block takes, one behind the other
let:
  TILE: 4 * THREADS
  TILES: ceil_div(N, TILE)
require:
  - 64 * STAGES * THREADS <= MAX_SHARED_BYTES
scratch:
  brew: {dtype: float32, shape: [8]}
launches:
  - kernel: brew_coefficients
    grid: [1]
    block: [32]
    args:
      - brew
      - rate
      - decay
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - eps
      - correction1
      - correction2
  - kernel: adamw_ring
    grid: ["ceil_div(TILES, RUN)"]
    block: [THREADS]
    shared: 64 * STAGES * THREADS
    args: [gradient, parameter, first, second, brew, N]
*/

// AdamW in place. The tensors are pulled by cp.async, 16 bytes a thread and tensor, into a ring of
// STAGES tiles; a tile is worked off in strides of THREADS, so that a thread computes elements that
// other threads have copied.

constexpr int kTile = 4 * THREADS;

enum Slot { kBeta1, kBeta2, kNew1, kNew2, kKeep, kStep, kUnbias, kEps };
enum Tensor { kGradient, kParameter, kFirst, kSecond, kTensors };

extern "C" __global__ void brew_coefficients(float* __restrict__ brew, float rate, float decay,
                                             float beta1, float beta2, float new1, float new2,
                                             float eps, float correction1, float correction2) {
    float value = 0.0f;
    switch (threadIdx.x) {
        case kBeta1: value = beta1; break;
        case kBeta2: value = beta2; break;
        case kNew1: value = new1; break;
        case kNew2: value = new2; break;
        case kKeep: value = 1.0f - rate * decay; break;
        case kStep: value = rate / correction1; break;
        case kUnbias: value = 1.0f / correction2; break;
        case kEps: value = eps; break;
        default: return;
    }
    brew[threadIdx.x] = value;
}

// 16 bytes, of which only `bytes` come from memory; the rest is filled with zeros.
__device__ __forceinline__ void pull(float* shared, const float* global, int bytes) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int OPEN>
__device__ __forceinline__ void wait_until_open() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(OPEN) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
adamw_ring(const float* __restrict__ gradient, float* parameter, float* first, float* second,
           const float* __restrict__ brew, int N) {
    extern __shared__ __align__(16) float ring[];   // [STAGES][kTensors][kTile]

    const int tiles = (N + kTile - 1) / kTile;
    const int from = blockIdx.x * RUN;
    const int count = min(RUN, tiles - from);

    auto fetch = [&](int t) {
        const long long at = static_cast<long long>(from + t) * kTile + 4 * threadIdx.x;
        const long long left = N - at;
        const int bytes = left >= 4 ? 16 : left > 0 ? 4 * static_cast<int>(left) : 0;
        const long long safe = bytes ? at : 0;
        float* slot = ring + (t % STAGES) * kTensors * kTile + 4 * threadIdx.x;
        pull(slot + kGradient * kTile, gradient + safe, bytes);
        pull(slot + kParameter * kTile, parameter + safe, bytes);
        pull(slot + kFirst * kTile, first + safe, bytes);
        pull(slot + kSecond * kTile, second + safe, bytes);
    };

#pragma unroll
    for (int t = 0; t < STAGES - 1; ++t) {
        if (t < count) fetch(t);
        close_group();
    }

    const float beta1 = brew[kBeta1], beta2 = brew[kBeta2], new1 = brew[kNew1], new2 = brew[kNew2];
    const float keep = brew[kKeep], step = brew[kStep], unbias = brew[kUnbias], eps = brew[kEps];

    for (int t = 0; t < count; ++t) {
        wait_until_open<STAGES - 2>();
        __syncthreads();   // tile t is there for everybody, and nobody reads tile t - 1 any more
        if (t + STAGES - 1 < count) fetch(t + STAGES - 1);
        close_group();

        const float* slot = ring + (t % STAGES) * kTensors * kTile;
        const long long base = static_cast<long long>(from + t) * kTile;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int e = j * THREADS + threadIdx.x;
            if (base + e >= N) break;
            const float g = slot[kGradient * kTile + e];
            const float m = beta1 * slot[kFirst * kTile + e] + new1 * g;
            const float v = beta2 * slot[kSecond * kTile + e] + new2 * g * g;
            const float size = sqrtf(v * unbias) + eps;
            parameter[base + e] = slot[kParameter * kTile + e] * keep - step * m / size;
            first[base + e] = m;
            second[base + e] = v;
        }
    }
}
