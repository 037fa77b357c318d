/* evoengine
name: carousel_rows_in_flight
precision: fp32
summary: a block walks over several rows; while one is normalised in shared memory the next one is on its way
tunables:
  THREADS: [256, 128, 512]
  ROWS: [4, 8, 2]      # rows that a block walks over, at most
let:
  V: 4 if C % 4 == 0 else 1
  SLOT: round_up(C, 4)
require:
  - THREADS % WARP_SIZE == 0
  - 8*SLOT <= MAX_SHARED_BYTES - 1024
launches:
  - kernel: carousel<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 8*SLOT
    args: [x, weight, bias, out, N, C, SLOT, eps]
*/

// Layer normalisation of the rows of x [N, C]. Two slots of shared memory take turns: the row in one of them is
// summed up, summed up again around its mean, and written, all without another look at global memory, while cp.async
// fills the other. A thread copies the very elements that it reads later, but the block agrees on a slot's state at
// barriers anyway, so the two loops need not match.

constexpr int kWarps = THREADS / 32;

template <int V>
struct alignas(sizeof(float) * V) Vec {
    float f[V];
};

template <int V>
__device__ __forceinline__ void copy_async(Vec<V>* to, const Vec<V>* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (V == 4) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
    }
}

// Two sums over the block at once. `board` is one of several in shared memory, so that a call never has to wait for
// the readers of the call before.
__device__ __forceinline__ float2 block_sums(float2 mine, float2* board) {
#pragma unroll
    for (int mask = 16; mask >= 1; mask >>= 1) {
        mine.x += __shfl_xor_sync(0xffffffffu, mine.x, mask);
        mine.y += __shfl_xor_sync(0xffffffffu, mine.y, mask);
    }
    if (threadIdx.x % 32 == 0) board[threadIdx.x / 32] = mine;
    __syncthreads();
    float2 all = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
        all.x += board[w].x;
        all.y += board[w].y;
    }
    return all;
}

template <int V>
__global__ void __launch_bounds__(THREADS)
carousel(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ out, int N, int C, int slot_floats, float eps) {
    extern __shared__ __align__(16) float slots[];
    __shared__ float2 boards[2][kWarps];

    using Chunk = Vec<V>;
    const int chunks = C / V;
    const Chunk* gains = reinterpret_cast<const Chunk*>(weight);
    const Chunk* shifts = reinterpret_cast<const Chunk*>(bias);

    auto fetch = [&](int row, int slot) {
        if (row < N) {
            const Chunk* from = reinterpret_cast<const Chunk*>(x + static_cast<size_t>(row) * C);
            Chunk* to = reinterpret_cast<Chunk*>(slots + slot * slot_floats);
            for (int i = threadIdx.x; i < chunks; i += THREADS) copy_async<V>(to + i, from + i);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    int slot = 0;
    fetch(blockIdx.x, slot);
    for (int row = blockIdx.x; row < N; row += gridDim.x) {
        fetch(row + gridDim.x, slot ^ 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");    // all but the row just asked for
        __syncthreads();
        const Chunk* values = reinterpret_cast<const Chunk*>(slots + slot * slot_floats);

        float2 sums = make_float2(0.0f, 0.0f);
        for (int i = threadIdx.x; i < chunks; i += THREADS) {
            const Chunk v = values[i];
#pragma unroll
            for (int j = 0; j < V; ++j) sums.x += v.f[j];
        }
        const float mean = block_sums(sums, boards[0]).x / C;

        // Around the mean, since E[x^2] - E[x]^2 cancels. The deviations' own sum tells by how much the rounded
        // mean is off, which matters for rows that lie far from zero.
        sums = make_float2(0.0f, 0.0f);
        for (int i = threadIdx.x; i < chunks; i += THREADS) {
            const Chunk v = values[i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = v.f[j] - mean;
                sums.x += d;
                sums.y = fmaf(d, d, sums.y);
            }
        }
        sums = block_sums(sums, boards[1]);
        const float off = sums.x / C;
        const float variance = fmaxf(sums.y / C - off * off, 0.0f);
        const float inverse = 1.0f / sqrtf(variance + eps);

        Chunk* target = reinterpret_cast<Chunk*>(out + static_cast<size_t>(row) * C);
        for (int i = threadIdx.x; i < chunks; i += THREADS) {
            const Chunk v = values[i];
            const Chunk g = gains[i], s = shifts[i];
            Chunk y;
#pragma unroll
            for (int j = 0; j < V; ++j) y.f[j] = fmaf((v.f[j] - mean - off) * inverse, g.f[j], s.f[j]);
            target[i] = y;
        }
        __syncthreads();    // nobody needs this slot any more
        slot ^= 1;
    }
}
