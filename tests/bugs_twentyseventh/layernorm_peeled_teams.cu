/* evoengine
name: layernorm_peeled_teams
precision: fp32
summary: teams of warps take a row each; 16-byte loads behind a peeled head, merged moments around a pivot
tunables:
  TEAM_WARPS: [4, 2, 8]
  TEAMS: [2, 1, 4]        # in a block; each has a named barrier
  ROWS_EACH: [4, 1, 8]    # rows that a team takes one after the other
launches:
  - kernel: normalise
    grid: ["ceil_div(N, TEAMS * ROWS_EACH)"]
    block: [32 * TEAM_WARPS, TEAMS]
    args: [x, weight, bias, out, N, C, eps]
*/

// out = (x - mean) / sqrt(variance + eps) * weight + bias. The statistics of a row are those of its distances from a
// pivot inside of it: where the mean is large beside the spread, the distances are exact and their mean is small.

constexpr int TEAM_THREADS = 32 * TEAM_WARPS;

// How many values there are, their mean, and the sum of the squared deviations from it.
struct Moments {
    float count = 0.0f, mean = 0.0f, m2 = 0.0f;
};

// Chan's rule for the moments of two sets together.
__device__ __forceinline__ Moments merged(const Moments& p, const Moments& q) {
    Moments both;
    both.count = p.count + q.count;
    if (both.count == 0.0f) return both;
    const float delta = q.mean - p.mean, share = q.count / both.count;
    both.mean = p.mean + delta * share;
    both.m2 = p.m2 + q.m2 + delta * delta * p.count * share;
    return both;
}

__device__ __forceinline__ Moments of_one(float v) {
    Moments m;
    m.count = 1.0f;
    m.mean = v;
    return m;
}

// The moments of four values, with a single product in place of three divisions.
__device__ __forceinline__ Moments of_four(float4 v) {
    Moments m;
    m.count = 4.0f;
    m.mean = ((v.x + v.y) + (v.z + v.w)) * 0.25f;
    v.x -= m.mean, v.y -= m.mean, v.z -= m.mean, v.w -= m.mean;
    m.m2 = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    return m;
}

__device__ __forceinline__ Moments over_warp(Moments m) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        Moments other;
        other.count = __shfl_xor_sync(0xffffffffu, m.count, step);
        other.mean = __shfl_xor_sync(0xffffffffu, m.mean, step);
        other.m2 = __shfl_xor_sync(0xffffffffu, m.m2, step);
        m = merged(m, other);
    }
    return m;
}

// The middle one of three: an outlier would be a poor pivot.
__device__ __forceinline__ float median(float a, float b, float c) { return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c)); }

__device__ __forceinline__ float4 less(float4 v, float p) { return make_float4(v.x - p, v.y - p, v.z - p, v.w - p); }

__global__ void __launch_bounds__(TEAM_THREADS * TEAMS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ float3 board[2][TEAMS][TEAM_WARPS];     // the moments of every warp, for even and for odd turns
    const int rank = threadIdx.x, warp = rank / 32, team = threadIdx.y;
    int turn = 0;

    for (int row = blockIdx.x * TEAMS + team; row < N; row += gridDim.x * TEAMS) {
        const size_t start = size_t(row) * C;
        const float* source = x + start;
        float* target = out + start;
        // The row begins at any multiple of four bytes: [0, head) is before the first whole 16-byte piece, [tail, C) behind the last.
        const int head = min(C, int((4 - start % 4) % 4));
        const int quads = (C - head) / 4, tail = head + 4 * quads;
        const int singles = head + (C - tail);
        const float4* source4 = reinterpret_cast<const float4*>(source + head);
        float4* target4 = reinterpret_cast<float4*>(target + head);
        const float pivot = median(source[0], source[C / 2], source[C - 1]);

        Moments mine;
        for (int i = rank; i < quads; i += TEAM_THREADS) mine = merged(mine, of_four(less(source4[i], pivot)));
        for (int i = rank; i < singles; i += TEAM_THREADS) mine = merged(mine, of_one(source[i < head ? i : tail + i - head] - pivot));
        mine = over_warp(mine);
        if (rank % 32 == 0) board[turn][team][warp] = make_float3(mine.count, mine.mean, mine.m2);
        // One barrier a row is enough: a warp comes back to this half of the board two rows later, behind another barrier.
        asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(TEAM_THREADS) : "memory");
        Moments all;
#pragma unroll
        for (int w = 0; w < TEAM_WARPS; ++w) {
            const float3 noted = board[turn][team][w];
            Moments part;
            part.count = noted.x, part.mean = noted.y, part.m2 = noted.z;
            all = merged(all, part);
        }
        turn ^= 1;

        const float scale = 1.0f / sqrtf(all.m2 / all.count + eps);
        auto normal = [&](float v, int column) { return ((v - pivot) - all.mean) * scale * weight[column] + bias[column]; };
        for (int i = rank; i < quads; i += TEAM_THREADS) {
            const float4 v = source4[i];
            const int column = head + 4 * i;
            target4[i] = make_float4(normal(v.x, column), normal(v.y, column + 1), normal(v.z, column + 2), normal(v.w, column + 3));
        }
        for (int i = rank; i < singles; i += TEAM_THREADS) {
            const int column = i < head ? i : tail + i - head;
            target[column] = normal(source[column], column);
        }
    }
}
