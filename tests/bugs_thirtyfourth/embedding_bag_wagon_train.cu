/* evoengine
name: embedding_bag_wagon_train
precision: fp32
summary: the warps of a block share a bag; each pulls wagons of rows into its own shared memory, a wagon ahead
tunables:
  WARPS: [4, 2, 8]
  WAGON: [4, 8, 2]             # rows a warp copies at a time
  BAGS_EACH: [2, 1, 4]         # bags a block sums one after the other
require:
  - 1024 * WARPS * WAGON + 512 * WARPS <= 49152
launches:
  - kernel: wagon_train
    grid: ["ceil_div(BAGS, BAGS_EACH)", "ceil_div(D, 128)"]
    block: [32, WARPS]
    args: [table, indices, offsets, out, BAGS, D]
*/

#define EVERY_LANE 0xffffffffu
#define CLOSE() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")

__device__ __forceinline__ void copy_pack(float4* to, const float4* from)
{
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void operator+=(float4 &a, const float4 &b)
{
    a.x += b.x;
    a.y += b.y;
    a.z += b.z;
    a.w += b.w;
}

// Lane l owns the four columns of pack blockIdx.y * 32 + l throughout: it copies them and it adds
// them, so a wagon needs no barrier, only the wait for its copies.
struct Train
{
    const float4 *table;
    const int *indices;
    int packs, pack, end;

    __device__ void load(float4 (*wagon)[32], int at) const
    {
        const int lane = threadIdx.x;
        int mine = 0;
        if (lane < WAGON && at + lane < end) mine = indices[at + lane];
#pragma unroll
        for (int r = 0; r < WAGON; r++) {
            const int row = __shfl_sync(EVERY_LANE, mine, r);
            if (at + r < end && pack < packs)
                copy_pack(&wagon[r][lane], table + (size_t)row * packs + pack);
        }
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS)
wagon_train(const float4 *__restrict__ table, const int *__restrict__ indices,
            const int *__restrict__ offsets, float4 *__restrict__ out, int BAGS, int D)
{
    __shared__ float4 wagons[WARPS][2][WAGON][32];
    __shared__ float4 parts[WARPS][32];

    const int lane = threadIdx.x, warp = threadIdx.y;
    const int packs = D / 4;
    const int pack = blockIdx.y * 32 + lane;
    float4 sum;

    for (int k = 0; k < BAGS_EACH; k++) {
        const int bag = blockIdx.x * BAGS_EACH + k;
        if (bag >= BAGS) break;

        const int end = offsets[bag + 1];
        const Train train = {table, indices, packs, pack, end};
        int at = offsets[bag] + warp * WAGON;
        int turn = 0;
        sum = make_float4(0.f, 0.f, 0.f, 0.f);

        if (at < end) train.load(wagons[warp][turn], at);
        CLOSE();
        while (at < end) {
            const int next = at + WARPS * WAGON;
            if (next < end) train.load(wagons[warp][turn ^ 1], next);
            CLOSE();
            WAIT(1);
            const int rows = min(WAGON, end - at);
            if (pack < packs)
                for (int r = 0; r < rows; r++) sum += wagons[warp][turn][r][lane];
            at = next;
            turn ^= 1;
        }
        WAIT(0);

        // the warps' shares of the bag, added by the first warp
        parts[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && pack < packs) {
            float4 total = parts[0][lane];
#pragma unroll
            for (int w = 1; w < WARPS; w++) total += parts[w][lane];
            out[(size_t)bag * packs + pack] = total;
        }
        __syncthreads();   /* before the next bag's shares */
    }
}
