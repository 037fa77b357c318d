/* evoengine
name: layernorm_row_stages
precision: fp32
summary: some rows a block, the next one copied to shared memory while one is normalised there
tunables:
  THREADS: [256, 128, 512]
  ROWS: [4, 2, 8]              # rows a block takes one after the other
let:
  WIDTH: 4 if C % 4 == 0 else 1
  PITCH: round_up(C, 4)        # floats from one stage to the next, so that both are aligned
launches:
  - kernel: layernorm_row_stages<WIDTH>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 2 * PITCH * 4
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

// out = (x - mean) / sqrt(variance + eps) * weight + bias over the rows of x [N, C]. Memory is read
// once: all passes over a row find it in shared memory, where it was put by asynchronous copies.

#define FULL_WARP 0xffffffffu

template <int BYTES>
__device__ __forceinline__ void copy_async(float* target, const float* source) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;\n" ::"r"(address), "l"(source), "n"(BYTES) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

// Waits until at most PENDING groups of this thread's copies are under way.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

template <int WIDTH>
__device__ __forceinline__ void fetch_row(float* stage, const float* row, int C) {
    for (int at = threadIdx.x * WIDTH; at < C; at += THREADS * WIDTH) copy_async<4 * WIDTH>(stage + at, row + at);
}

// Two sums at a time over all threads of the block, known to each of them.
__device__ float2 sum_over_block(float2 value) {
    __shared__ float2 per_warp[THREADS / 32];
    __shared__ float2 total;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        value.x += __shfl_down_sync(FULL_WARP, value.x, step);
        value.y += __shfl_down_sync(FULL_WARP, value.y, step);
    }
    if (lane == 0) per_warp[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < THREADS / 32 ? per_warp[lane] : make_float2(0.0f, 0.0f);
#pragma unroll
        for (int step = 16; step > 0; step >>= 1) {
            value.x += __shfl_down_sync(FULL_WARP, value.x, step);
            value.y += __shfl_down_sync(FULL_WARP, value.y, step);
        }
        if (lane == 0) total = value;
    }
    __syncthreads();   // the total stands until a later call has passed its own first barrier
    return total;
}

template <int WIDTH>
__global__ void __launch_bounds__(THREADS)
layernorm_row_stages(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                     float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ __align__(16) float stages[];
    int row = blockIdx.x, current = 0;
    fetch_row<WIDTH>(stages, x + static_cast<size_t>(row) * C, C);
    commit_copies();

    for (; row < N; row += gridDim.x) {
        const int next = row + gridDim.x;
        if (next < N) fetch_row<WIDTH>(stages + (current ^ 1) * pitch, x + static_cast<size_t>(next) * C, C);
        commit_copies();   // also an empty group, so that the count below is right for the last row
        wait_for_copies<1>();
        __syncthreads();   // the copies of all threads have arrived
        const float* values = stages + current * pitch;

        // Kahan's sum: a carry takes what each addition lost.
        float sum = 0.0f, carry = 0.0f;
        for (int i = threadIdx.x; i < C; i += THREADS) {
            const float term = values[i] - carry;
            const float larger = sum + term;
            carry = (larger - sum) - term;
            sum = larger;
        }
        const float2 total = sum_over_block(make_float2(sum, -carry));
        const float mean = (total.x + total.y) / C;

        // The mean is rounded, so the deviations add up to its error times C.
        float2 moments = make_float2(0.0f, 0.0f);
        for (int i = threadIdx.x; i < C; i += THREADS) {
            const float deviation = values[i] - mean;
            moments.x += deviation;
            moments.y = fmaf(deviation, deviation, moments.y);
        }
        moments = sum_over_block(moments);
        const float shift = moments.x / C;
        const float variance = fmaxf(moments.y / C - shift * shift, 0.0f);
        const float inverse = 1.0f / sqrtf(variance + eps);

        float* result = out + static_cast<size_t>(row) * C;
        for (int i = threadIdx.x; i < C; i += THREADS) {
            const float normal = ((values[i] - mean) - shift) * inverse;
            result[i] = fmaf(normal, weight[i], bias[i]);
        }
        __syncthreads();   // the stage is free for the row after the next
        current ^= 1;
    }
}
