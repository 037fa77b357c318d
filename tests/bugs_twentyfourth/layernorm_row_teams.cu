/* evoengine
name: layernorm_row_teams
precision: fp32
summary: teams of warps keep a row each in shared memory; the mean is a pair of floats, summed without rounding errors
tunables:
  TEAM_WARPS: [4, 2, 8]
  TEAMS: [2, 1, 4]
let:
  # a row may start at any of four places of its 16 bytes
  BUFFER_FLOATS: round_up(C + 3, 4)
  BLOCKS: max(1, min(ceil_div(N, 2 * TEAMS), 4 * SM_COUNT))
require:
  - 4 * TEAMS * BUFFER_FLOATS <= MAX_SHARED_BYTES
  - TEAMS * TEAM_WARPS <= 32
launches:
  - kernel: normalise_rows
    grid: [BLOCKS]
    block: [TEAMS * TEAM_WARPS * 32]
    shared: 4 * TEAMS * BUFFER_FLOATS
    args: [x, weight, bias, out, N, C, BUFFER_FLOATS, eps]
*/

constexpr int team_threads = TEAM_WARPS * 32;
constexpr unsigned whole_warp = 0xffffffffu;

// A sum and what its roundings have lost.
struct exact_sum {
    float high = 0.0f;
    float low = 0.0f;

    // Knuth's sum of two: `lost` is exactly the rounding error of the addition.
    __device__ __forceinline__ void add(float value) {
        const float sum = high + value;
        const float added = sum - high;
        const float lost = (high - (sum - added)) + (value - added);
        high = sum;
        low += lost;
    }
    __device__ __forceinline__ void merge(float other_high, float other_low) {
        add(other_high);
        low += other_low;
    }
};

// Barriers of one team alone: the teams are at different rows and must not wait for each other.
__device__ __forceinline__ void team_barrier(int team) {
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(team_threads) : "memory");
}

__device__ __forceinline__ exact_sum sum_over_warp(exact_sum part) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
        const float other_high = __shfl_down_sync(whole_warp, part.high, distance);
        const float other_low = __shfl_down_sync(whole_warp, part.low, distance);
        part.merge(other_high, other_low);
    }
    return part;     // complete in lane 0
}

// The sum over the threads of a team, for all of them. `board` has a place for each warp.
__device__ __forceinline__ exact_sum sum_over_team(exact_sum part, float2* board, int team, int thread_of_team) {
    part = sum_over_warp(part);
    if (thread_of_team % 32 == 0) board[thread_of_team / 32] = make_float2(part.high, part.low);
    team_barrier(team);
    exact_sum total;
#pragma unroll
    for (int warp = 0; warp < TEAM_WARPS; ++warp) total.merge(board[warp].x, board[warp].y);
    return total;
}

// Calls `use(index)` for the elements of the row that are this thread's.
template <typename Use>
__device__ __forceinline__ void for_each_element(int C, int thread_of_team, Use use) {
#pragma unroll 4
    for (int index = thread_of_team; index < C; index += team_threads) use(index);
}

__global__ void __launch_bounds__(TEAMS * TEAM_WARPS * 32)
normalise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
               int N, int C, int buffer_floats, float eps) {
    extern __shared__ __align__(16) float buffers[];
    __shared__ float2 mean_board[TEAMS][TEAM_WARPS], spread_board[TEAMS][TEAM_WARPS];
    const int team = threadIdx.x / team_threads;
    const int thread_of_team = threadIdx.x % team_threads;
    float* buffer = buffers + team * buffer_floats;

    for (long long row = static_cast<long long>(blockIdx.x) * TEAMS + team; row < N; row += static_cast<long long>(gridDim.x) * TEAMS) {
        const long long first = row * C;
        // The row lies in the buffer as far behind a multiple of 16 bytes as in memory, so that whole
        // vectors can be copied whatever its length is.
        const int shift = static_cast<int>(first & 3);
        const int head = min((4 - shift) & 3, C);            // elements before the first whole vector
        const int vectors = (C - head) / 4;
        const int tail = head + 4 * vectors;                 // the first element behind the last one
        float* cached = buffer + shift;

        exact_sum sum;
        const float4* source = reinterpret_cast<const float4*>(x + first + head);
        float4* target = reinterpret_cast<float4*>(cached + head);
        for (int v = thread_of_team; v < vectors; v += team_threads) {
            const float4 four = __ldcs(source + v);
            target[v] = four;
            sum.add(four.x);
            sum.add(four.y);
            sum.add(four.z);
            sum.add(four.w);
        }
        // At most six single ones: the first threads take them.
        const int singles = head + (C - tail);
        if (thread_of_team < singles) {
            const int index = thread_of_team < head ? thread_of_team : tail + thread_of_team - head;
            const float value = x[first + index];
            cached[index] = value;
            sum.add(value);
        }

        const exact_sum total = sum_over_team(sum, mean_board[team], team, thread_of_team);
        // The quotient in two floats as well: what the first lacks is found without rounding.
        const float mean = (total.high + total.low) / C;
        const float remainder = fmaf(-mean, static_cast<float>(C), total.high) + total.low;
        const float correction = remainder / C;

        exact_sum spread;
        for_each_element(C, thread_of_team, [&](int index) {
            const float deviation = (cached[index] - mean) - correction;
            spread.add(deviation * deviation);
        });
        const exact_sum squares = sum_over_team(spread, spread_board[team], team, thread_of_team);
        const float variance = (squares.high + squares.low) / C;
        const float scale = 1.0f / sqrtf(variance + eps);

        float* result = out + first;
        for_each_element(C, thread_of_team, [&](int index) {
            const float deviation = (cached[index] - mean) - correction;
            __stcs(result + index, fmaf(deviation * scale, __ldg(weight + index), __ldg(bias + index)));
        });
        team_barrier(team);      // the buffer is read up to here; the next row overwrites it
    }
}
