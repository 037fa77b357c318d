/* evoengine
name: tureen_ladled_rows
precision: fp32
summary: a warp takes a tile of columns of a bag; teams of lanes fetch every other row through a private ring of asynchronous copies
tunables:
  WARPS: [4, 8, 2]
  TEAM: [16, 8, 32]       # lanes that share a row: 4 * TEAM columns a tile
  STAGES: [4, 3, 6]       # rows on their way to a lane
  ITEMS: [4, 2, 8]        # tiles a warp serves, one after the other
  BAND: [8, 4, 16]        # bags whose tiles are neighbours in the order of the work
let:
  TILES: ceil_div(D, 4 * TEAM)
require:
  - WARP_SIZE % TEAM == 0
  - 16 * WARP_SIZE * STAGES * WARPS <= MAX_SHARED_BYTES
launches:
  - kernel: serve<TEAM>
    grid: ["ceil_div(BAGS * TILES, WARPS * ITEMS)"]
    block: [WARPS * WARP_SIZE]
    shared: 16 * WARP_SIZE * STAGES * WARPS
    args: [table, indices, offsets, out, BAGS, D // 4, TILES]
*/

// Who does what
//   * A warp works on its own from the first line to the last; there is no barrier of a block.
//   * Its 32 lanes are LADLES teams. Team t takes the rows t, t + LADLES, t + 2 * LADLES, ... of a bag,
//     a member of the team four columns of each.
//   * The row numbers of a bag come 32 at a time, one a lane, and the next 32 are loaded while the
//     present ones are dealt out with shuffles.
//   * A lane reads back only the 16 bytes that it has copied itself, so its own wait is enough.

constexpr unsigned EVERYONE = 0xffffffffu;

// A tile of the work: columns [4 * TEAM * tile, ...) of one bag.
struct Dish {
    int bag, tile;
};

// Bands of BAND bags; within a band all bags of one tile, then all of the next: the same columns of
// the table stay in the L2.
__device__ __forceinline__ Dish dish_of(int item, int bags, int tiles) {
    const int band = item / (BAND * tiles);
    const int inside = item - band * BAND * tiles;
    const int height = min(BAND, bags - band * BAND);
    return {band * BAND + inside % height, inside / height};
}

__device__ __forceinline__ void ladle16(float4* to, const float4* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int OPEN>
__device__ __forceinline__ void until_open() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(OPEN) : "memory");
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ __forceinline__ float4 from_lane_across(float4 v, int step) {
    return make_float4(__shfl_xor_sync(EVERYONE, v.x, step), __shfl_xor_sync(EVERYONE, v.y, step),
                       __shfl_xor_sync(EVERYONE, v.z, step), __shfl_xor_sync(EVERYONE, v.w, step));
}

template <int LANES>
__global__ void __launch_bounds__(WARPS * 32)
serve(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
      float4* __restrict__ out, int bags, int columns, int tiles) {
    constexpr int LADLES = 32 / LANES;
    extern __shared__ float4 pots[];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int team = lane / LANES, member = lane % LANES;
    float4* const pot = pots + warp * STAGES * 32 + lane;   // stage s at pot[32 * s]
    const int work = bags * tiles;

    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int item = blockIdx.x * WARPS + warp; item < work; item += gridDim.x * WARPS) {
        const Dish dish = dish_of(item, bags, tiles);
        const int column = dish.tile * LANES + member;
        const bool served = column < columns;
        const float4* const source = table + (served ? column : 0);

        const int begin = offsets[dish.bag], end = offsets[dish.bag + 1];
        const int steps = (end - begin + LADLES - 1) / LADLES;
        int held = begin + lane < end ? indices[begin + lane] : 0;
        int ahead = begin + 32 + lane < end ? indices[begin + 32 + lane] : 0;

        // Starts the copies of a step: one row for each team. Steps come in ascending order.
        auto pour = [&](int step) {
            const int first = step * LADLES;
            if (step < steps) {
                if (first % 32 == 0 && first > 0) {
                    held = ahead;
                    const int next = begin + first + 32 + lane;
                    ahead = next < end ? indices[next] : 0;
                }
                const int row = __shfl_sync(EVERYONE, held, first % 32 + team);
                if (begin + first + team < end)
                    ladle16(pot + step % STAGES * 32, source + static_cast<long long>(row) * columns);
            }
            close_group();   // an empty one as well: the wait below counts groups
        };

#pragma unroll
        for (int step = 0; step < STAGES - 1; ++step) pour(step);

        for (int step = 0; step < steps; ++step) {
            until_open<STAGES - 2>();
            if (begin + step * LADLES + team < end) sum = sum + pot[step % STAGES * 32];
            pour(step + STAGES - 1);   // into the stage of the step before
        }

        // The teams have every LADLES-th row each.
#pragma unroll
        for (int step = LANES; step < 32; step *= 2) sum = sum + from_lane_across(sum, step);
        if (team == 0 && served) out[static_cast<long long>(dish.bag) * columns + column] = sum;
        sum = float4{};   // for the next dish
    }
}
