/* evoengine
name: tundra_row_flight
precision: fp32
summary: a block takes several rows; the next row flies into shared memory while the present one is normalised
tunables:
  THREADS: [128, 256, 512]
  ROWS_EACH: [4, 2, 8]
let:
  V: 4 if C % 4 == 0 else 1
  PITCH: round_up(C, 4)
require:
  - 8 * PITCH + 1024 <= MAX_SHARED_BYTES
launches:
  - kernel: tundra_rows<V>
    grid: ["ceil_div(N, ROWS_EACH)"]
    block: [THREADS]
    shared: 8 * PITCH
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

// The rows of a block are blockIdx.x, blockIdx.x + gridDim.x, ... Two row buffers take turns:
// while one is worked on, cp.async fills the other. A thread reads back only what it has
// copied itself, so its own wait is enough and the row needs no barrier.

namespace tundra {

constexpr int kWarps = THREADS / 32;
static_assert(kWarps <= 32, "a block has at most 32 warps");

template <int V>
struct alignas(4 * V) Vec {
    float at[V];
};

template <int V>
__device__ __forceinline__ void start_copy(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(4 * V) : "memory");
}

__device__ __forceinline__ void end_of_row() { asm volatile("cp.async.commit_group;" ::: "memory"); }

__device__ __forceinline__ void arrive_all_but_last() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

// Copies this thread's share of a row.
template <int V>
__device__ __forceinline__ void launch_row(float* buffer, const float* row, int C) {
    for (int c = threadIdx.x * V; c < C; c += THREADS * V) start_copy<V>(buffer + c, row + c);
}

// Both components summed over the block, known to every thread. `slots` belongs to this sum
// alone: the other sum's barrier parts this one from its next use.
__device__ __forceinline__ float2 total(float2 v, float2* slots) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        v.x += __shfl_xor_sync(0xffffffffu, v.x, offset);
        v.y += __shfl_xor_sync(0xffffffffu, v.y, offset);
    }
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    float2 all = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
        all.x += slots[i].x;
        all.y += slots[i].y;
    }
    return all;
}

}  // namespace tundra

template <int V>
__global__ void __launch_bounds__(THREADS)
tundra_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
            float* __restrict__ out, int N, int C, int pitch, float eps) {
    using namespace tundra;
    extern __shared__ __align__(16) float buffers[];   // [2][pitch]
    __shared__ float2 slots[2][kWarps];

    const float count = static_cast<float>(C);
    int turn = 0;
    if (blockIdx.x < N) launch_row<V>(buffers, x + static_cast<size_t>(blockIdx.x) * C, C);
    end_of_row();

    for (int row = blockIdx.x; row < N; row += gridDim.x) {
        const int following = row + gridDim.x;
        if (following < N)
            launch_row<V>(buffers + (turn ^ 1) * pitch, x + static_cast<size_t>(following) * C, C);
        end_of_row();
        arrive_all_but_last();
        const float* here = buffers + turn * pitch;

        // mean
        float2 sum = make_float2(0.0f, 0.0f);
        for (int c = threadIdx.x * V; c < C; c += THREADS * V) {
            const Vec<V> p = *reinterpret_cast<const Vec<V>*>(here + c);
#pragma unroll
            for (int j = 0; j < V; ++j) sum.x += p.at[j];
        }
        const float rough_mean = total(sum, slots[0]).x / count;

        // deviations from it: their sum mends the mean, their squares give the variance
        float2 moments = make_float2(0.0f, 0.0f);
        for (int c = threadIdx.x * V; c < C; c += THREADS * V) {
            const Vec<V> p = *reinterpret_cast<const Vec<V>*>(here + c);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = p.at[j] - rough_mean;
                moments.x += d;
                moments.y += d * d;
            }
        }
        moments = total(moments, slots[1]);
        const float rest = moments.x / count;
        const float variance = fmaxf(moments.y / count - rest * rest, 0.0f);
        const float inverse = 1.0f / sqrtf(variance + eps);

        float* target = out + static_cast<size_t>(row) * C;
        for (int c = threadIdx.x * V; c < C; c += THREADS * V) {
            const Vec<V> p = *reinterpret_cast<const Vec<V>*>(here + c);
            const Vec<V> g = *reinterpret_cast<const Vec<V>*>(weight + c);
            const Vec<V> s = *reinterpret_cast<const Vec<V>*>(bias + c);
            Vec<V> y;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float unit = ((p.at[j] - rough_mean) - rest) * inverse;
                y.at[j] = unit * g.at[j] + s.at[j];
            }
            *reinterpret_cast<Vec<V>*>(target + c) = y;
        }
        turn ^= 1;
    }
}
