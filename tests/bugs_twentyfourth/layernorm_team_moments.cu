/* evoengine
name: layernorm_team_moments
precision: fp32
summary: teams of a block take rows of their own, held in registers; moments about a pivot are merged pairwise
tunables:
  LANES: [128, 256, 64]        # threads of a team
  TEAMS: [2, 4, 1]             # rows of a block at the same time
  ROUNDS: [4, 2, 1]            # rows of a team one after the other
let:
  WIDTH: 4 if C % 4 == 0 else 1
constants:
  HELD: ceil_div(C, LANES * (4 if C % 4 == 0 else 1))
require:
  - LANES % WARP_SIZE == 0
  - LANES * TEAMS <= 1024
launches:
  - kernel: layernorm_teams<WIDTH>
    grid: ["ceil_div(N, TEAMS * ROUNDS)"]
    block: [LANES, TEAMS]
    args: [x, weight, bias, out, N, C, eps]
*/

// The row is read once. Everything is measured from a pivot near the mean, the average of the first
// elements: a large common offset would otherwise take the digits away that the deviations need.

constexpr int WARPS_OF_TEAM = LANES / 32;

template <int WIDTH>
struct alignas(4 * WIDTH) Pack {
    float lane[WIDTH];
};

// Number, mean and sum of the squared deviations from it of some elements.
struct Moments {
    float number = 0.0f, mean = 0.0f, spread = 0.0f;

    __device__ __forceinline__ void merge(const Moments& other) {
        const float total = number + other.number;
        if (total == 0.0f) return;
        const float gap = other.mean - mean;
        const float share = other.number / total;
        mean += gap * share;
        spread += other.spread + gap * gap * number * share;
        number = total;
    }

    __device__ __forceinline__ Moments of_lane(int mask) const {
        Moments theirs;
        theirs.number = __shfl_xor_sync(0xffffffffu, number, mask);
        theirs.mean = __shfl_xor_sync(0xffffffffu, mean, mask);
        theirs.spread = __shfl_xor_sync(0xffffffffu, spread, mask);
        return theirs;
    }
};

// A barrier for one team: the others may be in another row, or have none left.
__device__ __forceinline__ void team_barrier() {
    asm volatile("bar.sync %0, %1;" :: "r"(threadIdx.y + 1), "n"(LANES) : "memory");
}

__device__ __forceinline__ float pivot_of(const float* row, int C) {
    const int lane = threadIdx.x % 32, sampled = min(C, 32);
    float sample = lane < sampled ? row[lane] : 0.0f;
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) sample += __shfl_xor_sync(0xffffffffu, sample, mask);
    return sample / sampled;
}

template <int WIDTH>
__global__ void __launch_bounds__(LANES * TEAMS)
layernorm_teams(const float* __restrict__ x, const float* __restrict__ weight,
                const float* __restrict__ bias, float* __restrict__ out, int N, int C, float eps) {
    using Vector = Pack<WIDTH>;
    __shared__ float board[2][TEAMS][WARPS_OF_TEAM][3];
    const int team = threadIdx.y, member = threadIdx.x, packs = C / WIDTH;
    const Vector* gains = reinterpret_cast<const Vector*>(weight);
    const Vector* shifts = reinterpret_cast<const Vector*>(bias);

    int side = 0;   // of the board: who is late still reads the other one
    for (int row = blockIdx.x * TEAMS + team; row < N; row += gridDim.x * TEAMS) {
        const float* row_start = x + static_cast<size_t>(row) * C;
        const Vector* source = reinterpret_cast<const Vector*>(row_start);
        Vector* target = reinterpret_cast<Vector*>(out + static_cast<size_t>(row) * C);
        const float pivot = pivot_of(row_start, C);

        Vector held[HELD];
        float sum = 0.0f;
        int filled = 0;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            const int place = h * LANES + member;
            if (place >= packs) continue;
            held[h] = source[place];
            filled += WIDTH;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) sum += held[h].lane[k] -= pivot;
        }

        Moments moments;
        moments.number = filled;
        moments.mean = filled > 0 ? sum / filled : 0.0f;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (h * LANES + member >= packs) continue;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) {
                const float deviation = held[h].lane[k] - moments.mean;
                moments.spread += deviation * deviation;
            }
        }
#pragma unroll
        for (int mask = 1; mask < 32; mask <<= 1) moments.merge(moments.of_lane(mask));

        float(*scores)[3] = board[side][team];
        if (member % 32 == 0) {
            scores[member / 32][0] = moments.number;
            scores[member / 32][1] = moments.mean;
            scores[member / 32][2] = moments.spread;
        }
        team_barrier();
        Moments all;
        for (int w = 0; w < WARPS_OF_TEAM; ++w) {
            Moments part;
            part.number = scores[w][0], part.mean = scores[w][1], part.spread = scores[w][2];
            all.merge(part);
        }
        side ^= 1;

        const float inverse = 1.0f / sqrtf(all.spread / C + eps);
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            const int place = h * LANES + member;
            if (place >= packs) continue;
            const Vector gain = gains[place], shift = shifts[place];
            Vector result;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k)
                result.lane[k] = (held[h].lane[k] - all.mean) * inverse * gain.lane[k] + shift.lane[k];
            target[place] = result;
        }
    }
}
