/* evoengine
name: layernorm_prefetched_moments
precision: fp32
summary: a block walks over rows, copies the next row to shared memory during the present one, and merges running moments
tunables:
  THREADS: [256, 128, 512]
  ROWS_PER_BLOCK: [4, 2, 8]
let:
  V: 4 if C % 4 == 0 else 1
  ROW_BYTES: round_up(4 * C, 16)
require:
  - 2 * ROW_BYTES + 1024 <= MAX_SHARED_BYTES
launches:
  - kernel: layernorm_rows<V>
    grid: ["ceil_div(N, ROWS_PER_BLOCK)"]
    block: [THREADS]
    shared: 2 * ROW_BYTES
    args: [x, weight, bias, out, N, C, eps, ROW_BYTES]
*/
// Every element is less the first one of its row before anything is summed: what is left is of the size
// of the spread, so that a large mean costs no digits. Threads read only what they copied themselves.

constexpr int WARPS = THREADS / 32;

// Count, mean and sum of squared deviations of some values; sets of values can be merged in any order.
struct Moments {
    float count, mean, squares;

    __device__ __forceinline__ void include(float value) {
        count += 1.0f;
        const float before = value - mean;
        mean += before / count;
        squares += before * (value - mean);
    }

    __device__ __forceinline__ void merge(float other_count, float other_mean, float other_squares) {
        const float total = count + other_count;
        if (total == 0.0f) return;   // threads beyond a short row have seen nothing
        const float difference = other_mean - mean;
        const float share = other_count / total;
        mean += difference * share;
        squares += other_squares + difference * difference * count * share;
        count = total;
    }

    // Afterwards every lane has the moments of the whole warp.
    __device__ __forceinline__ void merge_lanes() {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
            const float other_count = __shfl_xor_sync(0xffffffffu, count, step);
            const float other_mean = __shfl_xor_sync(0xffffffffu, mean, step);
            const float other_squares = __shfl_xor_sync(0xffffffffu, squares, step);
            merge(other_count, other_mean, other_squares);
        }
    }
};

template <int V> struct alignas(4 * V) Lump { float at[V]; };

// Copies V floats to shared memory in the background.
template <int V>
__device__ __forceinline__ void copy_lump(float* target, const float* source) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
    if constexpr (V == 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(source) : "memory");
}

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
               float* __restrict__ out, int N, int C, float eps, int row_bytes) {
    extern __shared__ __align__(16) unsigned char row_buffers[];
    __shared__ Moments warp_moments[2][WARPS];   // by parity of the row: one barrier a row is enough
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    auto buffer_of = [&](int parity) { return reinterpret_cast<float*>(row_buffers + parity * row_bytes); };
    auto prefetch = [&](int row, int parity) {
        if (row < N)
            for (int i = threadIdx.x * V; i < C; i += THREADS * V)
                copy_lump<V>(buffer_of(parity) + i, x + size_t(row) * C + i);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    int parity = 0;
    prefetch(blockIdx.x, parity);
    for (int row = blockIdx.x; row < N; row += gridDim.x, parity ^= 1) {
        prefetch(row + gridDim.x, parity ^ 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");   // this row has arrived, the next one need not
        const float* values = buffer_of(parity);
        const float pivot = x[size_t(row) * C];

        Moments moments = {0.0f, 0.0f, 0.0f};
        for (int i = threadIdx.x * V; i < C; i += THREADS * V) {
            const Lump<V> lump = *reinterpret_cast<const Lump<V>*>(values + i);
#pragma unroll
            for (int j = 0; j < V; ++j) moments.include(lump.at[j] - pivot);
        }
        moments.merge_lanes();
        if (lane == 0) warp_moments[parity][warp] = moments;
        __syncthreads();

        Moments of_row = warp_moments[parity][0];
        for (int w = 1; w < WARPS; ++w) {
            const Moments& other = warp_moments[parity][w];
            of_row.merge(other.count, other.mean, other.squares);
        }
        const float scale = 1.0f / sqrtf(of_row.squares / of_row.count + eps);

        for (int i = threadIdx.x * V; i < C; i += THREADS * V) {
            const Lump<V> lump = *reinterpret_cast<const Lump<V>*>(values + i);
            const Lump<V> w = *reinterpret_cast<const Lump<V>*>(weight + i);
            const Lump<V> b = *reinterpret_cast<const Lump<V>*>(bias + i);
            Lump<V> y;
#pragma unroll
            for (int j = 0; j < V; ++j) y.at[j] = (lump.at[j] - pivot - of_row.mean) * scale * w.at[j] + b.at[j];
            *reinterpret_cast<Lump<V>*>(out + size_t(row) * C + i) = y;
        }
    }
}
