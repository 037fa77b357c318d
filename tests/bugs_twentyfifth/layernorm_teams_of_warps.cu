/* evoengine
name: layernorm_teams_of_warps
precision: fp32
summary: a team of warps holds a row in registers and merges counts, means and squares of its threads
tunables:
  TEAM: [128, 64, 256]         # threads of a row
  TEAMS: [2, 1, 4]             # rows of a block at the same time
  TEAM_ROWS: [2, 1, 4]         # rows that a team takes one after the other
let:
  VEC: 4 if C % 4 == 0 else 1
  HELD: ceil_div(C, TEAM * VEC)
require:
  - TEAM * TEAMS <= 1024
  - TEAM % WARP_SIZE == 0
launches:
  - kernel: "norm_rows<VEC, HELD>"
    grid: ["ceil_div(N, TEAMS * TEAM_ROWS)"]
    block: [TEAM, TEAMS]
    args: [x, weight, bias, out, N, C, eps]
*/

// A row is read once. Its statistics are merged as Chan, Golub and LeVeque do it, which needs no
// difference of large numbers. The teams of a block have a barrier each and do not wait for others.

constexpr int kTeamWarps = TEAM / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

template <int W> struct alignas(4 * W) Chunk { float f[W]; };

struct Moments {
    float n, mean, m2;   // how many, their mean, the sum of squared distances from it

    __device__ __forceinline__ void absorb(const Moments& o) {
        const float total = n + o.n;
        if (total == 0.0f) return;
        const float gap = o.mean - mean, share = o.n / total;
        mean += gap * share;
        m2 += o.m2 + gap * gap * n * share;
        n = total;
    }
};

// Barrier 0 belongs to __syncthreads.
__device__ __forceinline__ void teamBarrier(int team) {
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(TEAM) : "memory");
}

template <int W, int H>
__global__ void __launch_bounds__(TEAM * TEAMS)
norm_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ Moments warpMoments[TEAMS][kTeamWarps];
    __shared__ float warpRest[TEAMS][kTeamWarps];
    const int tid = threadIdx.x, team = threadIdx.y;
    const int lane = tid & 31, warp = tid >> 5;
    const int chunks = C / W;
    const auto* gamma = reinterpret_cast<const Chunk<W>*>(weight);
    const auto* beta = reinterpret_cast<const Chunk<W>*>(bias);

    const int firstRow = (blockIdx.x * TEAMS + team) * TEAM_ROWS;
    const int lastRow = min(firstRow + TEAM_ROWS, N);
    for (int row = firstRow; row < lastRow; ++row) {
        const auto* src = reinterpret_cast<const Chunk<W>*>(x + static_cast<size_t>(row) * C);
        auto* dst = reinterpret_cast<Chunk<W>*>(out + static_cast<size_t>(row) * C);

        Chunk<W> held[H];
        float sum = 0.0f;
        int have = 0;
#pragma unroll
        for (int h = 0; h < H; ++h) {
            const int c = h * TEAM + tid;
            if (c < chunks) {
                held[h] = src[c];
#pragma unroll
                for (int j = 0; j < W; ++j) sum += held[h].f[j];
                have += W;
            }
        }
        Moments own = {static_cast<float>(have), have > 0 ? sum / have : 0.0f, 0.0f};
#pragma unroll
        for (int h = 0; h < H; ++h) {
            if (h * TEAM + tid < chunks) {
#pragma unroll
                for (int j = 0; j < W; ++j) {
                    const float d = held[h].f[j] - own.mean;
                    own.m2 = fmaf(d, d, own.m2);
                }
            }
        }
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1) {
            Moments other;
            other.n = __shfl_down_sync(kAllLanes, own.n, offset);
            other.mean = __shfl_down_sync(kAllLanes, own.mean, offset);
            other.m2 = __shfl_down_sync(kAllLanes, own.m2, offset);
            own.absorb(other);
        }
        if (lane == 0) warpMoments[team][warp] = own;
        teamBarrier(team);
        Moments all = warpMoments[team][0];
#pragma unroll
        for (int w = 1; w < kTeamWarps; ++w) all.absorb(warpMoments[team][w]);

        // The mean is rounded to its own size, which may be far above the spread of the row. The
        // distances from it have a mean as well, and that is what the rounding took.
        float rest = 0.0f;
#pragma unroll
        for (int h = 0; h < H; ++h) {
            if (h * TEAM + tid < chunks) {
#pragma unroll
                for (int j = 0; j < W; ++j) rest += held[h].f[j] - all.mean;
            }
        }
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1) rest += __shfl_xor_sync(kAllLanes, rest, offset);
        if (lane == 0) warpRest[team][warp] = rest;
        teamBarrier(team);
        float shift = 0.0f;
#pragma unroll
        for (int w = 0; w < kTeamWarps; ++w) shift += warpRest[team][w];
        shift /= C;

        const float invStd = 1.0f / sqrtf(all.m2 / C + eps);
#pragma unroll
        for (int h = 0; h < H; ++h) {
            const int c = h * TEAM + tid;
            if (c < chunks) {
                const Chunk<W> g = gamma[c], b = beta[c];
                Chunk<W> y;
#pragma unroll
                for (int j = 0; j < W; ++j) {
                    const float centred = (held[h].f[j] - all.mean) - shift;
                    y.f[j] = fmaf(centred * invStd, g.f[j], b.f[j]);
                }
                dst[c] = y;
            }
        }
    }
}
