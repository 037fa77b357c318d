/* evoengine
name: stash_layernorm_crews
precision: fp32
summary: crews of two warps, each with a row in shared memory and its next row on the way by cp.async
tunables:
  CREWS: [4, 2, 8]           # rows that a block works on at once
  CREW_WARPS: [2, 1, 4]
  TURNS: [2, 1, 4]           # rows that a crew takes one after the other
let:
  V: 4 if C % 4 == 0 else 1
  PITCH: round_up(C, 4)
  BLOCKS: ceil_div(N, CREWS * TURNS)
require:
  - 8 * CREWS * round_up(C, 4) <= MAX_SHARED_BYTES
  - CREWS * CREW_WARPS <= 32
launches:
  - kernel: normalise_rows<V>
    grid: [BLOCKS]
    block: [WARP_SIZE * CREW_WARPS, CREWS]
    shared: 2 * CREWS * PITCH * 4
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

// Layer normalisation with two readings of each row, both from shared memory: first the mean, then the deviations from
// it. While a crew computes, the row of its next turn is copied into the other half of its stash.

constexpr int kLanes = 32;
constexpr int kCrewThreads = kLanes * CREW_WARPS;

template <int V>
struct alignas(4 * V) Vec {
    float at[V];
};

// What a crew adds up: two numbers at once, to save a round.
struct Pair {
    float first, second;
};

template <int V>
__device__ __forceinline__ void copy_async(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(4 * V) : "memory");
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int ALLOWED>
__device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(ALLOWED) : "memory");
}

class Crew {
public:
    // `board` holds a Pair for each warp of the block.
    __device__ explicit Crew(Pair (*board)[CREW_WARPS]) : mine_(board[threadIdx.y]) {}

    // The sums over all threads of the crew. All crews of the block come here together.
    __device__ __forceinline__ Pair total(Pair p) {
#pragma unroll
        for (int far = kLanes / 2; far > 0; far >>= 1) {
            p.first += __shfl_down_sync(0xffffffffu, p.first, far);
            p.second += __shfl_down_sync(0xffffffffu, p.second, far);
        }
        __syncthreads();    // the former totals have been read
        if (threadIdx.x % kLanes == 0) mine_[threadIdx.x / kLanes] = p;
        __syncthreads();
        Pair whole{0.0f, 0.0f};
#pragma unroll
        for (int w = 0; w < CREW_WARPS; ++w) {
            whole.first += mine_[w].first;
            whole.second += mine_[w].second;
        }
        return whole;
    }

private:
    Pair* mine_;
};

// Asks for one row. Rows past the end are not copied, but their group is closed all the same.
template <int V>
__device__ __forceinline__ void request_row(float* stash, const float* x, long long row, int N, int C) {
    if (row < N)
        for (int c = threadIdx.x * V; c < C; c += kCrewThreads * V) copy_async<V>(stash + c, x + row * C + c);
    close_group();
}

template <int V>
__global__ void __launch_bounds__(kCrewThreads * CREWS)
normalise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
               float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ __align__(16) float stashes[];    // [2][CREWS][pitch]
    __shared__ Pair board[CREWS][CREW_WARPS];

    Crew crew(board);
    const float share = 1.0f / static_cast<float>(C);
    const long long stride = static_cast<long long>(gridDim.x) * CREWS;
    long long row = static_cast<long long>(blockIdx.x) * CREWS + threadIdx.y;

    request_row<V>(stashes + threadIdx.y * pitch, x, row, N, C);

    for (int turn = 0; turn < TURNS; ++turn, row += stride) {
        float* other = stashes + ((turn + 1) % 2 * CREWS + threadIdx.y) * pitch;
        const float* here = stashes + (turn % 2 * CREWS + threadIdx.y) * pitch;
        request_row<V>(other, x, turn + 1 < TURNS ? row + stride : N, N, C);
        wait_for_groups<1>();    // all but the row just asked for
        __syncthreads();

        const int width = row < N ? C : 0;    // a crew without a row comes along to the barriers
        Pair sums{0.0f, 0.0f};
        for (int c = threadIdx.x * V; c < width; c += kCrewThreads * V) {
            const Vec<V> v = *reinterpret_cast<const Vec<V>*>(here + c);
#pragma unroll
            for (int i = 0; i < V; ++i) sums.first += v.at[i];
        }
        const float mean = crew.total(sums).first * share;

        // The mean is rounded; what the deviations from it add up to says by how much.
        Pair moments{0.0f, 0.0f};
        for (int c = threadIdx.x * V; c < width; c += kCrewThreads * V) {
            const Vec<V> v = *reinterpret_cast<const Vec<V>*>(here + c);
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const float off = v.at[i] - mean;
                moments.first += off;
                moments.second = fmaf(off, off, moments.second);
            }
        }
        moments = crew.total(moments);
        const float residue = moments.first * share;
        const float variance = fmaxf(moments.second * share - residue * residue, 0.0f);
        const float scale = 1.0f / sqrtf(variance + eps);

        for (int c = threadIdx.x * V; c < width; c += kCrewThreads * V) {
            const Vec<V> v = *reinterpret_cast<const Vec<V>*>(here + c);
            const Vec<V> w = *reinterpret_cast<const Vec<V>*>(weight + c);
            const Vec<V> b = *reinterpret_cast<const Vec<V>*>(bias + c);
            Vec<V> y;
#pragma unroll
            for (int i = 0; i < V; ++i) y.at[i] = fmaf((v.at[i] - mean - residue) * scale, w.at[i], b.at[i]);
            *reinterpret_cast<Vec<V>*>(out + row * C + c) = y;
        }
        __syncthreads();    // the stash just read is the target of the next turn's request
    }
}
