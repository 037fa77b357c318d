/* evoengine
name: bag_merge_path
precision: fp32
summary: ends of bags and tokens are one merged list cut into equal pieces, so that empty bags cost work, too; what a piece leaves open is settled by a third launch
tunables:
  LEN: [16, 32, 8]             # steps of a team: a step is a token or the end of a bag
  TEAMS: [4, 8]
let:
  QUADS: D // 4
  LANES: 8 if QUADS <= 8 else 16 if QUADS <= 16 else 32
  STRIDE: LEN * TEAMS
  PATH: T + BAGS
  TILES: ceil_div(PATH, STRIDE)
scratch:
  corner: {dtype: int32, shape: ["ceil_div(T + BAGS, LEN * TEAMS) + 1"]}
  open_bag: {dtype: int32, shape: ["ceil_div(T + BAGS, LEN * TEAMS) * TEAMS"]}
  open_sum: {dtype: float32, shape: ["ceil_div(T + BAGS, LEN * TEAMS) * TEAMS", D]}
launches:
  - kernel: cut_path
    grid: ["ceil_div(TILES + 1, 64)"]
    block: [64]
    args: [offsets, corner, T, BAGS, TILES]
  - kernel: walk_path<LANES>
    grid: [TILES]
    block: [LANES, TEAMS]
    args: [table, indices, offsets, corner, out, open_bag, open_sum, T, BAGS, QUADS]
  - kernel: settle
    grid: ["ceil_div(TILES * TEAMS, 4)"]
    block: [WARP_SIZE, 4]
    args: [open_bag, open_sum, out, TILES * TEAMS, BAGS, QUADS]
*/

// Merrill and Garland's merge-based SpMV with a matrix of ones. The path goes down one step where a
// bag ends and right one step where a token is added:
//
//              tokens  0   1   2   3   4
//      bag 0 (ends at 2)   ---->---+
//      bag 1 (empty, 2)            +
//      bag 2 (ends at 5)           +--->---->---->
//
// Step d of the path is on diagonal d: bags passed + tokens passed == d. A bag is stored by the piece
// in which it ENDS; a piece that stops inside of a bag leaves its sum in open_sum.

constexpr int TILE = LEN * TEAMS;

// How many bags the path has passed at this diagonal. ends[i] is where bag i ends, in tokens.
__device__ __forceinline__ int bags_passed(const int* ends, int bags, int tokens, int first_token, int diagonal)
{
    int lo = max(0, diagonal - tokens), hi = min(diagonal, bags);
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (ends[mid] - first_token <= diagonal - 1 - mid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

__global__ void cut_path(const int* __restrict__ offsets, int* __restrict__ corner, int T, int bags, int tiles)
{
    const int tile = blockIdx.x * blockDim.x + threadIdx.x;
    if (tile > tiles) return;
    corner[tile] = bags_passed(offsets + 1, bags, T, 0, min(tile * TILE, T + bags));
}

struct Quad {
    float4 sum;
    __device__ __forceinline__ Quad() : sum(make_float4(0.f, 0.f, 0.f, 0.f)) {}
    __device__ __forceinline__ void operator+=(const float4& r)
    {
        sum.x += r.x;
        sum.y += r.y;
        sum.z += r.z;
        sum.w += r.w;
    }
    __device__ __forceinline__ void clear() { *this = Quad(); }
};

template <int LANES>
__global__ void __launch_bounds__(LANES * TEAMS)
walk_path(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
          const int* __restrict__ corner, float4* __restrict__ out, int* __restrict__ open_bag,
          float4* __restrict__ open_sum, int T, int bags, int quads)
{
    // Ends of bags in front, indices of tokens behind them: together as many as the tile has steps.
    __shared__ int staged[TILE];

    const int start = blockIdx.x * TILE, stop = min(start + TILE, T + bags);
    const int bag0 = corner[blockIdx.x], bag1 = corner[blockIdx.x + 1];
    const int token0 = start - bag0, token1 = stop - bag1;
    const int my_bags = bag1 - bag0, my_tokens = token1 - token0;

    for (int i = threadIdx.y * LANES + threadIdx.x; i < my_bags + my_tokens; i += LANES * TEAMS)
        staged[i] = i < my_bags ? offsets[bag0 + i + 1] : indices[token0 + i - my_bags];
    __syncthreads();

    const int* ends = staged;
    const int* rows = staged + my_bags;
    const int team = threadIdx.y;

    const int from = min(team * LEN, stop - start), to = min(from + LEN, stop - start);
    const int b_from = bags_passed(ends, my_bags, my_tokens, token0, from);
    const int b_to = bags_passed(ends, my_bags, my_tokens, token0, to);
    const int t_to = to - b_to;
    const int piece = blockIdx.x * TEAMS + team;

    for (int q = threadIdx.x; q < quads; q += LANES) {
        Quad acc;
        int t = from - b_from;
        for (int b = b_from; b < b_to; ++b) {
            const int end = ends[b] - token0;
            for (; t < end; ++t) acc += __ldg(table + static_cast<size_t>(rows[t]) * quads + q);
            out[static_cast<size_t>(bag0 + b) * quads + q] = acc.sum;
            acc.clear();
        }
#pragma unroll 4
        for (; t < t_to; ++t) acc += __ldg(table + static_cast<size_t>(rows[t]) * quads + q);
        open_sum[static_cast<size_t>(piece) * quads + q] = acc.sum;
    }
    if (threadIdx.x == 0) open_bag[piece] = bag0 + b_to;
}

// Pieces that stop inside of the same bag follow one another. The first of such a run adds them all to
// what the piece with the bag's end has stored, in the order of the tokens: no atomics.
__global__ void settle(const int* __restrict__ open_bag, const float4* __restrict__ open_sum,
                       float4* __restrict__ out, int pieces, int bags, int quads)
{
    const int head = blockIdx.x * blockDim.y + threadIdx.y;
    if (head >= pieces) return;
    const int bag = open_bag[head];
    if (bag == bags) return;                                  // behind the end of the path
    if (head > 0 && open_bag[head - 1] == bag) return;        // in the run of another

    for (int q = threadIdx.x; q < quads; q += 32) {
        Quad acc;
        for (int piece = head; piece < pieces && open_bag[piece] == bag; ++piece)
            acc += open_sum[static_cast<size_t>(piece) * quads + q];
        float4* target = out + static_cast<size_t>(bag) * quads + q;
        acc += *target;
        *target = acc.sum;
    }
}
