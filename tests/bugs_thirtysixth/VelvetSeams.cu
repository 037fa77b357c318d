/* evoengine
name: velvet_seams
precision: fp32
summary: equal runs of indices whatever the bags are; bags that cross the end of a run are sewn together by a second launch
tunables:
  RUN: [32, 64, 16]
  TALL: [4, 8, 2]
  WIDE: [32, 16]
  FLIGHT: [4, 2, 8]
  FOLD: [8, 4]
let:
  QUADS: D // 4
  RUNS: ceil_div(T, RUN)
scratch:
  edges: {dtype: float32, shape: [RUNS, 2, D]}
launches:
  - kernel: "sum_runs<RUN, TALL, WIDE, FLIGHT>"
    grid: ["ceil_div(RUNS, TALL)", "ceil_div(QUADS, WIDE)"]
    block: [WIDE, TALL]
    args: [table, indices, offsets, edges, out, T, BAGS, QUADS]
  - kernel: "sew_bags<RUN, WIDE, FOLD>"
    grid: [BAGS, "ceil_div(QUADS, WIDE)"]
    block: [WIDE, FOLD]
    args: [edges, offsets, out, QUADS]
*/
#define DEVICE __device__ __forceinline__

/* The two launches share this convention. Run r covers indices [r * RUN, (r + 1) * RUN).
 *   - a bag that lies within one run:            written straight to `out`
 *   - a bag that began before the run:           its part goes to edges[r][0]
 *   - a bag that begins in the run and goes on:  its part goes to edges[r][1]
 * A bag over runs a..z is thus edges[a][1] + edges[a + 1][0] + ... + edges[z][0].
 * A bag without indices is nobody's in the first launch; the second writes its zeros.
 */

DEVICE void accumulate(float4& s, const float4 v) {
    s.x += v.x;
    s.y += v.y;
    s.z += v.z;
    s.w += v.w;
}

/* The bag that holds index `place`: the last one whose offset is not beyond it. */
DEVICE int bag_at(const int* __restrict__ offsets, int bags, int place) {
    int low = 0, high = bags;
    while (high - low > 1) {
        const int middle = (low + high) >> 1;
        if (offsets[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

template <int R, int Y, int X, int DEPTH>
__global__ void __launch_bounds__(X * Y)
sum_runs(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float4* __restrict__ edges, float4* __restrict__ out, int total, int bags, int quads) {
    __shared__ __align__(16) int numbers[Y * R];

    /* the block's indices: vectors of four, and one by one where fewer are left */
    const int base = blockIdx.x * Y * R;
    for (int v = threadIdx.y * X + threadIdx.x; v < Y * R / 4; v += X * Y) {
        const int from = base + 4 * v;
        if (from + 4 <= total)
            reinterpret_cast<int4*>(numbers)[v] = *reinterpret_cast<const int4*>(indices + from);
        else
            for (int j = 0; from + j < total; ++j) numbers[4 * v + j] = indices[from + j];
    }
    __syncthreads();

    const int quad = blockIdx.y * X + threadIdx.x;
    const int run = blockIdx.x * Y + threadIdx.y;
    const int low = run * R, high = min(low + R, total);
    if (low >= total || quad >= quads) return;

    const int* mine = numbers + threadIdx.y * R;
    const int count = high - low;
    const float4* column = table + quad;

    int bag = bag_at(offsets, bags, low);
    int begin = offsets[bag], end = offsets[bag + 1];

    auto put = [&](const float4 s) {
        float4* row;
        if (begin < low)
            row = edges + (2ll * run + 0) * quads;
        else if (end > high)
            row = edges + (2ll * run + 1) * quads;
        else
            row = out + static_cast<long long>(bag) * quads;
        row[quad] = s;
    };

    /* rows in flight do not care where bags end */
    float4 flight[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; ++k)
        if (k < count) flight[k] = column[static_cast<long long>(mine[k]) * quads];

    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int first = 0; first < count; first += DEPTH) {
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            const int i = first + k;
            if (i < count) {
                if (low + i == end) {
                    put(sum);
                    sum = make_float4(0.f, 0.f, 0.f, 0.f);
                    begin = end;
                    do {
                        end = offsets[++bag + 1];
                    } while (end == begin);
                }
                accumulate(sum, flight[k]);
                if (i + DEPTH < count)
                    flight[k] = column[static_cast<long long>(mine[i + DEPTH]) * quads];
            }
        }
    }
    put(sum);
}

template <int R, int X, int Y>
__global__ void __launch_bounds__(X * Y)
sew_bags(const float4* __restrict__ edges, const int* __restrict__ offsets, float4* __restrict__ out, int quads) {
    __shared__ float4 pleats[Y][X];
    const int bag = blockIdx.x;
    const int begin = offsets[bag], end = offsets[bag + 1];
    if (begin < end && begin / R == (end - 1) / R) return;   /* the first launch has written it */

    const int quad = blockIdx.y * X + threadIdx.x;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    if (begin < end && quad < quads) {
        const int first = begin / R, last = (end - 1) / R;
        for (int r = first + threadIdx.y; r <= last; r += Y) {
            const int slot = r == first ? 1 : 0;
            accumulate(sum, edges[(2ll * r + slot) * quads + quad]);
        }
    }

    pleats[threadIdx.y][threadIdx.x] = sum;
#pragma unroll
    for (int half = Y / 2; half > 0; half /= 2) {
        __syncthreads();   /* the rows below are complete */
        if (threadIdx.y < half)
            accumulate(pleats[threadIdx.y][threadIdx.x], pleats[threadIdx.y + half][threadIdx.x]);
    }
    if (threadIdx.y == 0 && quad < quads)
        out[static_cast<long long>(bag) * quads + quad] = pleats[0][threadIdx.x];
}
