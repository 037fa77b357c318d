/* evoengine
name: layernorm_parity_slots
precision: fp32
summary: a block normalises a run of rows; the next row comes into shared memory by cp.async meanwhile, and reductions alternate between two sets of slots
tunables:
  THREADS: [256, 128, 512]
  RUN: [4, 2, 8]
let:
  V: 4 if C % 4 == 0 else 1
  PITCH: round_up(C, 4)
require:
  - THREADS % WARP_SIZE == 0
  - 8 * PITCH + 1024 <= MAX_SHARED_BYTES
launches:
  - kernel: normalise_run<V>
    grid: ["ceil_div(N, RUN)"]
    block: [THREADS]
    shared: 8 * PITCH
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/
#include <cuda_pipeline_primitives.h>

namespace {

constexpr int warps = THREADS / 32;
static_assert((warps & (warps - 1)) == 0, "the last step of a reduction halves the warps");

template <int V> struct alignas(4 * V) Vec {
    float e[V];
};

// Sums of pairs over the block. Each call uses the other set of slots, therefore one barrier is
// enough: who writes a set again has passed the barrier of the call in between, before which all
// threads have read it.
class PairSum {
public:
    __device__ explicit PairSum(float2 (*slots)[warps]) : slots_(slots), parity_(0) {}

    __device__ float2 operator()(float a, float b) {
        const int lane = threadIdx.x & 31;
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) {
            a += __shfl_down_sync(~0u, a, d);
            b += __shfl_down_sync(~0u, b, d);
        }
        if (lane == 0) slots_[parity_][threadIdx.x >> 5] = make_float2(a, b);
        __syncthreads();
        const float2 mine = lane < warps ? slots_[parity_][lane] : make_float2(0.0f, 0.0f);
        a = mine.x;
        b = mine.y;
#pragma unroll
        for (int d = warps / 2; d > 0; d >>= 1) {
            a += __shfl_down_sync(~0u, a, d);
            b += __shfl_down_sync(~0u, b, d);
        }
        parity_ ^= 1;
        return make_float2(__shfl_sync(~0u, a, 0), __shfl_sync(~0u, b, 0));
    }

private:
    float2 (*slots_)[warps];
    int parity_;
};

// Row `row` on its way into `buffer`, V floats a copy.
template <int V>
__device__ void request(float* buffer, const float* x, long long row, int C) {
    const float* source = x + row * C;
    for (int i = threadIdx.x * V; i < C; i += THREADS * V)
        __pipeline_memcpy_async(buffer + i, source + i, sizeof(Vec<V>));
}

}  // namespace

template <int V>
__global__ void __launch_bounds__(THREADS)
normalise_run(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
              float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ __align__(16) float buffers[];   // [2][pitch]
    __shared__ float2 slots[2][warps];
    PairSum sum_pair(slots);

    const long long begin = static_cast<long long>(blockIdx.x) * RUN;
    const int rows = static_cast<int>(min(static_cast<long long>(RUN), N - begin));
    const int vecs = C / V;
    const auto* gain = reinterpret_cast<const Vec<V>*>(weight);
    const auto* shift = reinterpret_cast<const Vec<V>*>(bias);

    request<V>(buffers, x, begin, C);
    __pipeline_commit();

    for (int r = 0; r < rows; ++r) {
        float* current = buffers + (r & 1) * pitch;
        __pipeline_wait_prior(0);
        __syncthreads();   // the row is complete, and nobody reads the one before it any more
        if (r + 1 < rows) request<V>(buffers + (~r & 1) * pitch, x, begin + r + 1, C);
        __pipeline_commit();

        // First sweep: the mean, as a distance from some element of the row. Where all elements are
        // large and close together, differences from one of them are exact.
        const float anchor = current[0];
        const auto* values = reinterpret_cast<const Vec<V>*>(current);
        float distance = 0.0f;
        for (int i = threadIdx.x; i < vecs; i += THREADS) {
            const Vec<V> a = values[i];
#pragma unroll
            for (int j = 0; j < V; ++j) distance += a.e[j] - anchor;
        }
        const float middle = sum_pair(distance, 0.0f).x / C;

        // Second sweep: squares about that mean, and what is left of the deviations.
        float rest = 0.0f, squares = 0.0f;
        for (int i = threadIdx.x; i < vecs; i += THREADS) {
            const Vec<V> a = values[i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = (a.e[j] - anchor) - middle;
                rest += d;
                squares = fmaf(d, d, squares);
            }
        }
        const float2 both = sum_pair(rest, squares);
        const float error = both.x / C;
        const float variance = fmaxf(both.y / C - error * error, 0.0f);
        const float inverse = 1.0f / sqrtf(variance + eps);

        auto* result = reinterpret_cast<Vec<V>*>(out + (begin + r) * C);
        for (int i = threadIdx.x; i < vecs; i += THREADS) {
            const Vec<V> a = values[i], g = gain[i], s = shift[i];
            Vec<V> y;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = ((a.e[j] - anchor) - middle) - error;
                y.e[j] = fmaf(d * inverse, g.e[j], s.e[j]);
            }
            result[i] = y;
        }
    }
}
