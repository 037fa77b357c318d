/* evoengine
name: layernorm_rows_ahead
precision: fp32
summary: blocks that take several rows and copy the next one into shared memory while they normalise this one; merged Welford moments
tunables:
  THREADS: [256, 128, 512]
  ROWS: [4, 8, 2]              # of a block
let:
  WIDTH: 4 if C % 4 == 0 else 1
  ROOM: round_up(C, 32)        # floats of a row in shared memory
require:
  - 8 * ROOM <= MAX_SHARED_BYTES - 1024
launches:
  - kernel: layernorm_rows_ahead<WIDTH>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 8 * ROOM           # two rows
    args: [x, weight, bias, out, N, C, ROOM, eps]
*/
// Every row is read from memory once. Its mean and squares come from Welford's update in each thread, merged by the rule
// of Chan; the rounding error of the mean is taken from the deviations and subtracted as well.
#include <cuda_pipeline.h>

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int NUM_WARPS = THREADS / 32;

struct Moments {
    float count, mean, m2;     // m2: the sum of squared deviations from the mean

    __device__ void add(float value) {
        count += 1.0f;
        const float before = value - mean;
        mean += before / count;
        m2 += before * (value - mean);
    }

    __device__ void merge(const Moments& other) {
        if (other.count == 0.0f) return;
        const float total = count + other.count, delta = other.mean - mean;
        const float share = other.count / total;
        mean += delta * share;
        m2 += other.m2 + delta * delta * count * share;
        count = total;
    }
};

__device__ Moments moments_of_block(Moments own, Moments* of_warps) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        Moments other;
        other.count = __shfl_down_sync(ALL_LANES, own.count, offset);
        other.mean = __shfl_down_sync(ALL_LANES, own.mean, offset);
        other.m2 = __shfl_down_sync(ALL_LANES, own.m2, offset);
        own.merge(other);
    }
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
    __syncthreads();
    Moments all = of_warps[0];     // merged by each thread in one order, so all know the same
    for (int w = 1; w < NUM_WARPS; ++w) all.merge(of_warps[w]);
    return all;
}

__device__ float sum_of_block(float v, float* of_warps) {
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(ALL_LANES, v, offset);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    float all = 0.0f;
    for (int w = 0; w < NUM_WARPS; ++w) all += of_warps[w];
    return all;
}

template <int WIDTH>
__device__ __forceinline__ void copy_row(float* buffer, const float* __restrict__ row, int C) {
    for (int i = threadIdx.x * WIDTH; i < C; i += THREADS * WIDTH)
        __pipeline_memcpy_async(buffer + i, row + i, WIDTH * sizeof(float));
}

template <int WIDTH> struct alignas(4 * WIDTH) Floats { float at[WIDTH]; };

template <int WIDTH>
__global__ void __launch_bounds__(THREADS)
layernorm_rows_ahead(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                     float* __restrict__ out, int N, int C, int room, float eps) {
    extern __shared__ __align__(16) float rows[];      // [2][room]
    __shared__ float warp_sums[NUM_WARPS];
    __shared__ Moments warp_moments[NUM_WARPS];
    using Pack = Floats<WIDTH>;

    const int first = blockIdx.x * ROWS, last = min(N, first + ROWS);
    copy_row<WIDTH>(rows, x + size_t(first) * C, C);
    __pipeline_commit();

    for (int r = first; r < last; ++r) {
        const int turn = (r - first) & 1;
        const float* row = rows + turn * room;
        if (r + 1 < last) copy_row<WIDTH>(rows + (turn ^ 1) * room, x + size_t(r + 1) * C, C);
        __pipeline_commit();             // without a copy as well: the wait below counts groups
        __pipeline_wait_prior(1);
        __syncthreads();                 // the copies of all threads have come

        Moments own = {0.0f, 0.0f, 0.0f};
        for (int i = threadIdx.x; i < C; i += THREADS) own.add(row[i]);
        const Moments whole = moments_of_block(own, warp_moments);

        float drift = 0.0f;
        for (int i = threadIdx.x; i < C; i += THREADS) drift += row[i] - whole.mean;
        const float off = sum_of_block(drift, warp_sums) / C;
        const float variance = whole.m2 / whole.count;
        const float scale = 1.0f / sqrtf(variance + eps);

        for (int i = threadIdx.x * WIDTH; i < C; i += THREADS * WIDTH) {
            const Pack g = *reinterpret_cast<const Pack*>(weight + i);
            const Pack shift = *reinterpret_cast<const Pack*>(bias + i);
            Pack y;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) y.at[e] = (row[i + e] - whole.mean - off) * scale * g.at[e] + shift.at[e];
            *reinterpret_cast<Pack*>(out + size_t(r) * C + i) = y;
        }
        __syncthreads();                 // this row's place may be filled again
    }
}
