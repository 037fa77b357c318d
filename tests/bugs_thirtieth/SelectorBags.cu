/* evoengine
name: selector-bags
precision: fp32
summary: eight neighbouring bags are a product of a matrix of zeros and ones with the gathered rows, on the fp64 tensor cores
tunables:
  WARPS: [4, 2, 8]
  CHUNK: [64, 128]
let:
  COLUMN_BLOCKS: ceil_div(D, 32 * WARPS)
require:
  - CHUNK % 4 == 0
launches:
  - kernel: selectorBags
    grid: ["ceil_div(BAGS, 8)", COLUMN_BLOCKS]
    block: [32, WARPS]
    args: [table, indices, offsets, out, BAGS, D]
*/
//
// out[8 bags, 32 columns] = S[8 bags, tokens] * X[tokens, 32 columns], where S(b, t) is 1 if token t
// belongs to bag b. The tokens of eight neighbouring bags are neighbours, too, so one pass over them
// serves all eight. Products by 0 and 1 are exact, and the sums are kept in double precision.
//
// mma.m8n8k4 in double precision, g = lane / 4 and q = lane % 4:
//     A (8 x 4): a = A(g, q)      B (4 x 8): b = B(q, g)      C (8 x 8): c[h] = C(g, 2q + h)
//
// Four products share one S. Column n of product j is column 4n + j of the warp's 32, so that a lane
// loads one float4 of a row for all four, and stores two float4 of the result.
//
namespace {

constexpr int kBags = 8;
constexpr int kDepth = 4;
constexpr int kNobody = -1;  // owner of the slots that fill up the last step
constexpr int kThreads = 32 * WARPS;

struct Slot {
    int row;
    int owner;
};

struct Lane {
    int g, q;
    __device__ Lane() : g(threadIdx.x >> 2), q(threadIdx.x & 3) {}
};

__device__ __forceinline__ void mma884(double (&c)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}

/// Which of the block's bags has the token: as many bags end at or before it.
__device__ __forceinline__ int ownerOf(int token, const int (&edge)[kBags + 1]) {
    int owner = 0;
#pragma unroll
    for (int bag = 1; bag < kBags; ++bag) owner += edge[bag] <= token;
    return owner;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
selectorBags(const float* __restrict__ table, const int* __restrict__ indices,
             const int* __restrict__ offsets, float* __restrict__ out, int bags, int d) {
    __shared__ int edge[kBags + 1];
    __shared__ Slot slots[CHUNK];

    const Lane lane;
    const int thread = threadIdx.y * 32 + threadIdx.x;
    const int firstBag = blockIdx.x * kBags;
    const int firstColumn = (blockIdx.y * WARPS + threadIdx.y) * 32;

    // Bags beyond the last are empty: they begin and end where it ends.
    if (thread <= kBags) edge[thread] = offsets[min(firstBag + thread, bags)];
    __syncthreads();

    const int loadColumn = firstColumn + 4 * lane.g;
    const bool loads = loadColumn < d;
    const int end = edge[kBags];

    double sums[4][2] = {};
    for (int base = edge[0]; base < end; base += CHUNK) {
        const int tokens = min(CHUNK, end - base);
        const int padded = (tokens + kDepth - 1) / kDepth * kDepth;

        for (int i = thread; i < padded; i += kThreads) {
            Slot slot = {0, kNobody};
            if (i < tokens) slot = {indices[base + i], ownerOf(base + i, edge)};
            slots[i] = slot;
        }
        __syncthreads();  // the slots are there

#pragma unroll 4
        for (int k = 0; k < padded; k += kDepth) {
            const Slot slot = slots[k + lane.q];
            const double chosen = slot.owner == lane.g ? 1.0 : 0.0;
            float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (loads) {
                x = __ldg(reinterpret_cast<const float4*>(table + size_t(slot.row) * d + loadColumn));
            }
            mma884(sums[0], chosen, x.x);
            mma884(sums[1], chosen, x.y);
            mma884(sums[2], chosen, x.z);
            mma884(sums[3], chosen, x.w);
        }
        __syncthreads();  // nobody reads the slots any more
    }

    const int bag = firstBag + lane.g;
    if (bag >= bags) return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int column = firstColumn + 4 * (2 * lane.q + h);
        if (column < d) {
            *reinterpret_cast<float4*>(out + size_t(bag) * d + column) =
                make_float4(float(sums[0][h]), float(sums[1][h]), float(sums[2][h]), float(sums[3][h]));
        }
    }
}
