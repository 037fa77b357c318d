/* evoengine
name: ferry_row_moments
precision: fp32
summary: rows come to shared memory while the one before is normalised; moments by Welford, merged pairwise
tunables:
  THREADS: [256, 128, 512]
  ROWS: [4, 2, 8]              # rows that a block takes one after the other
let:
  WIDTH: 4 if C % 4 == 0 else 1     # floats that one copy moves
  ROW_FLOATS: round_up(C, 4)
require:
  - 8 * ROW_FLOATS + 1024 <= MAX_SHARED_BYTES
launches:
  - kernel: normalise_rows<WIDTH>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 8 * ROW_FLOATS      # two rows
    args: [x, weight, bias, out, N, C, ROW_FLOATS, eps]
*/
// out = (x - mean) / sqrt(variance + eps) * weight + bias. A row is read from memory once: it stays in shared memory
// for both passes, and the copy of the row after it is already under way.

constexpr int WARP_COUNT = THREADS / 32;

// Number, mean and sum of squared deviations of some values.
struct Moments {
    float count, mean, squares;

    __device__ __forceinline__ void add(float value) {
        count += 1.0f;
        const float delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }

    // Those of the values of both. Either side may have none.
    __device__ __forceinline__ void merge(const Moments& other) {
        const float total = count + other.count;
        if (total == 0.0f) return;
        const float delta = other.mean - mean, share = other.count / total;
        mean += delta * share;
        squares += other.squares + delta * delta * count * share;
        count = total;
    }
};

__device__ __forceinline__ void merge_lanes(Moments& moments) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
        Moments other;
        other.count = __shfl_down_sync(0xffffffffu, moments.count, distance);
        other.mean = __shfl_down_sync(0xffffffffu, moments.mean, distance);
        other.squares = __shfl_down_sync(0xffffffffu, moments.squares, distance);
        moments.merge(other);
    }
}

// Starts copying a row to shared memory, as one group of copies of each thread.
template <int WIDTH>
__device__ __forceinline__ void start_copy(float* buffer, const float* __restrict__ row, int columns) {
    for (int i = threadIdx.x * WIDTH; i < columns; i += THREADS * WIDTH) {
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(buffer + i));
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(row + i), "n"(4 * WIDTH) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int WIDTH>
__global__ void __launch_bounds__(THREADS)
normalise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
               float* __restrict__ out, int N, int C, int row_floats, float eps) {
    extern __shared__ __align__(16) float buffers[];
    __shared__ Moments warp_moments[WARP_COUNT];
    __shared__ float row_mean, row_factor;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_row = blockIdx.x * ROWS;
    const int row_count = min(ROWS, N - first_row);

    start_copy<WIDTH>(buffers, x + size_t(first_row) * C, C);
    for (int r = 0; r < row_count; ++r) {
        const size_t offset = size_t(first_row + r) * C;
        const float* row = buffers + r % 2 * row_floats;
        if (r + 1 < row_count) {
            start_copy<WIDTH>(buffers + (r + 1) % 2 * row_floats, x + offset + C, C);
            asm volatile("cp.async.wait_group 1;" ::: "memory");    // this row is there, the next may be on its way
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();   // the copies of the other threads are there too

        // Values are taken relative to the first of the row: a large common offset would cost the mean its last bits.
        const float anchor = row[0];
        Moments moments = {0.0f, 0.0f, 0.0f};
        for (int quad = threadIdx.x; quad < C / 4; quad += THREADS) {
            const float4 values = reinterpret_cast<const float4*>(row)[quad];
            moments.add(values.x - anchor);
            moments.add(values.y - anchor);
            moments.add(values.z - anchor);
            moments.add(values.w - anchor);
        }
        const int tail = C / 4 * 4 + threadIdx.x;
        if (tail < C) moments.add(row[tail] - anchor);

        merge_lanes(moments);
        if (lane == 0) warp_moments[warp] = moments;
        __syncthreads();
        if (warp == 0) {
            moments = lane < WARP_COUNT ? warp_moments[lane] : Moments{0.0f, 0.0f, 0.0f};
            merge_lanes(moments);
            if (lane == 0) {
                row_mean = moments.mean;
                row_factor = 1.0f / sqrtf(moments.squares / C + eps);
            }
        }
        __syncthreads();

        const float mean = row_mean, factor = row_factor;
        for (int i = threadIdx.x * WIDTH; i < C; i += THREADS * WIDTH) {
            if constexpr (WIDTH == 4) {
                const float4 v = *reinterpret_cast<const float4*>(row + i);
                const float4 w = *reinterpret_cast<const float4*>(weight + i), b = *reinterpret_cast<const float4*>(bias + i);
                float4 y;
                y.x = (v.x - anchor - mean) * factor * w.x + b.x;
                y.y = (v.y - anchor - mean) * factor * w.y + b.y;
                y.z = (v.z - anchor - mean) * factor * w.z + b.z;
                y.w = (v.w - anchor - mean) * factor * w.w + b.w;
                *reinterpret_cast<float4*>(out + offset + i) = y;
            } else {
                out[offset + i] = (row[i] - anchor - mean) * factor * weight[i] + bias[i];
            }
        }
        __syncthreads();   // the row and its two numbers are no longer needed
    }
}
