/* evoengine
name: bag_overflow_queue
precision: fp32
summary: a warp a bag; a bag longer than a piece is queued, and a second launch adds its pieces up
tunables:
  WARPS: [4, 8, 2]
  PIECE: [32, 64, 128]         # indices a warp takes at a time
  CREWS: [2, 4, 1]             # blocks of the second launch on a multiprocessor
let:
  COLS: D // 4
  TEAM: 8 if COLS <= 8 else 16 if COLS <= 16 else 32
  ROOM: T // PIECE + BAGS      # every long bag has at most one piece that is not whole
scratch:
  queue: {dtype: int32, shape: [ROOM, 2]}    # the bag and the first index of each piece
  tally: {dtype: int32, shape: [2], init: 0} # pieces queued, pieces taken
launches:
  - kernel: SumShortBags<TEAM>
    grid: ["ceil_div(BAGS, WARPS)"]
    block: [32 * WARPS]
    args: [table, indices, offsets, out, queue, tally, BAGS, COLS]
  - kernel: AddQueuedPieces<TEAM>
    grid: ["min(SM_COUNT * CREWS, ceil_div(ROOM, 4 * WARPS))"]
    block: [32 * WARPS]
    args: [table, indices, offsets, out, queue, tally, COLS]
*/

// Sums of the rows of a table by bag. A row has few columns of four floats, so a warp is cut into teams
// of TEAM lanes that take different rows; their sums are joined by shuffles.

constexpr unsigned kAllLanes = 0xffffffffu;

struct Acc {
    float x = 0.f, y = 0.f, z = 0.f, w = 0.f;
    __device__ __forceinline__ void Add(const float4& r) { x += r.x, y += r.y, z += r.z, w += r.w; }
    __device__ __forceinline__ void Add(const Acc& o) { x += o.x, y += o.y, z += o.z, w += o.w; }
};

template <int TEAM> struct WarpView {
    static constexpr int kTeams = 32 / TEAM;
    int lane, team, rank;
    __device__ __forceinline__ WarpView() : lane(threadIdx.x % 32), team(lane / TEAM), rank(lane % TEAM) {}
};

// The sum of column `col` over the rows [begin, end) of the indices, in every team; all lanes come here.
template <int TEAM>
__device__ __forceinline__ Acc GatherColumn(const float4* __restrict__ table, const int* __restrict__ indices,
                                            int begin, int end, int col, int cols, const WarpView<TEAM>& me) {
    constexpr int kTeams = WarpView<TEAM>::kTeams;
    Acc even, odd;
    if (col < cols) {
        int i = begin + me.team;
        for (; i + kTeams < end; i += 2 * kTeams) {
            const long long a = indices[i], b = indices[i + kTeams];
            const float4 rowA = __ldg(table + a * cols + col), rowB = __ldg(table + b * cols + col);
            even.Add(rowA);
            odd.Add(rowB);
        }
        if (i < end) even.Add(__ldg(table + static_cast<long long>(indices[i]) * cols + col));
    }
    even.Add(odd);
#pragma unroll
    for (int hop = TEAM; hop < 32; hop *= 2) {
        Acc other;
        other.x = __shfl_xor_sync(kAllLanes, even.x, hop);
        other.y = __shfl_xor_sync(kAllLanes, even.y, hop);
        other.z = __shfl_xor_sync(kAllLanes, even.z, hop);
        other.w = __shfl_xor_sync(kAllLanes, even.w, hop);
        even.Add(other);
    }
    return even;
}

template <int TEAM>
__global__ void __launch_bounds__(32 * WARPS)
SumShortBags(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
             float4* __restrict__ out, int* __restrict__ queue, int* __restrict__ tally, int bags, int cols) {
    const WarpView<TEAM> me;
    const int bag = blockIdx.x * WARPS + threadIdx.x / 32;
    if (bag >= bags) return;
    const int begin = offsets[bag], end = offsets[bag + 1];
    float4* target = out + static_cast<long long>(bag) * cols;

    if (end - begin > PIECE) {
        // The pieces are added to the row later, so it starts from zero.
        for (int col = me.lane; col < cols; col += 32) target[col] = make_float4(0.f, 0.f, 0.f, 0.f);
        const int pieces = (end - begin + PIECE - 1) / PIECE;
        int base = 0;
        if (me.lane == 0) base = atomicAdd(&tally[0], pieces);
        base = __shfl_sync(kAllLanes, base, 0);
        for (int p = me.lane; p < pieces; p += 32) {
            queue[2 * (base + p)] = bag;
            queue[2 * (base + p) + 1] = begin + p * PIECE;
        }
        return;
    }
    for (int from = 0; from < cols; from += TEAM) {
        const int col = from + me.rank;
        const Acc sum = GatherColumn<TEAM>(table, indices, begin, end, col, cols, me);
        if (me.team == 0 && col < cols) target[col] = make_float4(sum.x, sum.y, sum.z, sum.w);
    }
}

template <int TEAM>
__global__ void __launch_bounds__(32 * WARPS)
AddQueuedPieces(const float4* __restrict__ table, const int* __restrict__ indices,
                const int* __restrict__ offsets, float* __restrict__ out, const int* __restrict__ queue,
                int* __restrict__ tally, int cols) {
    const WarpView<TEAM> me;
    const int queued = tally[0];
    while (true) {
        int ticket = 0;
        if (me.lane == 0) ticket = atomicAdd(&tally[1], 1);
        ticket = __shfl_sync(kAllLanes, ticket, 0);
        if (ticket >= queued) break;
        const int bag = queue[2 * ticket], begin = queue[2 * ticket + 1];
        const int end = min(begin + PIECE, offsets[bag + 1]);
        for (int from = 0; from < cols; from += TEAM) {
            const int col = from + me.rank;
            const Acc sum = GatherColumn<TEAM>(table, indices, begin, end, col, cols, me);
            if (me.team != 0 || col >= cols) continue;
            float* cell = out + (static_cast<long long>(bag) * cols + col) * 4;
            atomicAdd(cell + 0, sum.x);
            atomicAdd(cell + 1, sum.y);
            atomicAdd(cell + 2, sum.z);
            atomicAdd(cell + 3, sum.w);
        }
    }
}
