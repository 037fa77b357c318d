/* evoengine
name: embedding_bag_shelf_atomics
precision: fp32
summary: a block sums GROUP neighbouring bags, whose indices lie one after the other; its warps share those out evenly and add what they have of a bag to a shelf in shared memory
tunables:
  WARPS: [4, 2, 8]
  GROUP: [8, 4, 16]
  DEPTH: [4, 2, 8]
let:
  SPAN: 4 * WARP_SIZE
launches:
  - kernel: shelf_bags<DEPTH>
    grid: ["ceil_div(BAGS, GROUP)", "ceil_div(D, SPAN)"]
    block: [WARP_SIZE, WARPS]
    args: [table, indices, offsets, out, BAGS, D // 4]
*/

#define LANES 32
#define BATCH (LANES * WARPS)      /* indices that a block stages at a time */
#define ALL 0xffffffffu

/* One bag's sums over the columns of this block. */
struct Shelf {
    float x[LANES], y[LANES], z[LANES], w[LANES];   /* four planes: no bank conflicts among lanes */
};

__device__ __forceinline__ void put(Shelf &shelf, int lane, float4 &part)
{
    atomicAdd(&shelf.x[lane], part.x);
    atomicAdd(&shelf.y[lane], part.y);
    atomicAdd(&shelf.z[lane], part.z);
    atomicAdd(&shelf.w[lane], part.w);
    part = make_float4(0.f, 0.f, 0.f, 0.f);
}

template <int UNROLLED>
__global__ void __launch_bounds__(BATCH)
shelf_bags(const float4 *__restrict__ table, const int *__restrict__ indices,
           const int *__restrict__ offsets, float4 *__restrict__ out, int BAGS, int columns)
{
    __shared__ Shelf shelves[GROUP];
    __shared__ int ends[GROUP];
    __shared__ int staged[2][BATCH];

    const int lane = threadIdx.x, warp = threadIdx.y;
    const int tid = warp * LANES + lane;
    const int bag0 = blockIdx.x * GROUP;
    const int bags = min(GROUP, BAGS - bag0);
    const int column = blockIdx.y * LANES + lane;
    const bool active = column < columns;

    /* empty shelves, and where every bag of the group ends */
    for (int i = tid; i < GROUP * LANES; i += BATCH) {
        Shelf &s = shelves[i / LANES];
        s.x[i % LANES] = s.y[i % LANES] = s.z[i % LANES] = s.w[i % LANES] = 0.f;
    }
    for (int b = tid; b < bags; b += BATCH)
        ends[b] = offsets[bag0 + b + 1];

    const int from = offsets[bag0], upto = offsets[bag0 + bags];
    int next = from + tid < upto ? indices[from + tid] : 0;

    int bag = 0;                                       /* of the last row that this warp added */
    float4 part = make_float4(0.f, 0.f, 0.f, 0.f);    /* what this warp has of it */
    int buffer = 0;

    for (int base = from; base < upto; base += BATCH, buffer ^= 1) {
        staged[buffer][tid] = next;
        __syncthreads();                               /* two buffers: one barrier a batch is enough */
        const int coming = base + BATCH + tid;
        if (coming < upto)
            next = indices[coming];

        /* this warp's share: LANES indices in a row */
        const int begin = base + warp * LANES;
        const int stop = min(begin + LANES, upto);
        for (int at = begin; at < stop; at += UNROLLED) {
            float4 rows[UNROLLED];
#pragma unroll
            for (int k = 0; k < UNROLLED; ++k) {
                rows[k] = make_float4(0.f, 0.f, 0.f, 0.f);
                if (active && at + k < stop) {
                    const int row = staged[buffer][at + k - base];
                    rows[k] = __ldg(&table[(size_t)row * columns + column]);
                }
            }
#pragma unroll
            for (int k = 0; k < UNROLLED; ++k) {
                if (at + k >= stop)
                    break;
                if (at + k >= ends[bag]) {             /* a new bag: hand in the old one's sums */
                    put(shelves[bag], lane, part);
                    do
                        ++bag;                         /* bags may be empty */
                    while (at + k >= ends[bag]);
                }
                part.x += rows[k].x;
                part.y += rows[k].y;
                part.z += rows[k].z;
                part.w += rows[k].w;
            }
        }
    }
    __syncthreads();                                   /* a group of empty bags has met no barrier yet */
    put(shelves[bag], lane, part);
    __syncthreads();

    if (!active)
        return;
    for (int b = warp; b < bags; b += WARPS) {
        const Shelf &s = shelves[b];
        out[(size_t)(bag0 + b) * columns + column] =
            make_float4(s.x[lane], s.y[lane], s.z[lane], s.w[lane]);
    }
}
