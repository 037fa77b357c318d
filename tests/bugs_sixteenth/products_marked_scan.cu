/* evoengine
name: products_marked_scan
precision: fp32
summary: a block has a row, a thread four places of every 512; products and whether they have met a mark are scanned by shuffles, and warps hand over through shared memory
launches:
  - kernel: scan_rows
    grid: [N]
    block: [128]
    args: [x, marks, out, L]
*/
constexpr int THREADS = 128, WARPS = 4, OWN = 4;

// A stretch of places: the product since its last mark, and whether it has one.
struct Stretch {
    float product;
    int marked;
};

__device__ __forceinline__ Stretch joined(Stretch left, Stretch right) {
    return {right.marked ? right.product : left.product * right.product, left.marked | right.marked};
}

__device__ __forceinline__ Stretch from_below(Stretch own, int distance) {
    return {__shfl_up_sync(0xffffffffu, own.product, distance), __shfl_up_sync(0xffffffffu, own.marked, distance)};
}

__global__ void __launch_bounds__(THREADS)
scan_rows(const float* __restrict__ x, const unsigned char* __restrict__ marks, float* __restrict__ out, int L) {
    __shared__ Stretch ends[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t base = size_t(blockIdx.x) * L;
    Stretch carry = {1.0f, 0};
    for (int start = 0; start < L; start += THREADS * OWN) {
        const int place = start + threadIdx.x * OWN;
        float4 values = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        uchar4 flags = make_uchar4(0, 0, 0, 0);
        if (place < L) {
            values = *reinterpret_cast<const float4*>(x + base + place);
            flags = *reinterpret_cast<const uchar4*>(marks + base + place);
        }
        Stretch own[OWN] = {{values.x, flags.x}, {values.y, flags.y}, {values.z, flags.z}, {values.w, flags.w}};
#pragma unroll
        for (int j = 1; j < OWN; ++j) own[j] = joined(own[j - 1], own[j]);

        Stretch scan = own[OWN - 1];
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const Stretch below = from_below(scan, distance);
            if (lane >= distance) scan = joined(below, scan);
        }
        if (lane == 31) ends[warp] = scan;
        __syncthreads();
        Stretch before = carry;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) before = joined(before, ends[w]);
            carry = joined(carry, ends[w]);
        }
        const Stretch neighbour = from_below(scan, 1);
        if (lane > 0) before = joined(before, neighbour);
        if (place < L)
            *reinterpret_cast<float4*>(out + base + place) =
                make_float4(joined(before, own[0]).product, joined(before, own[1]).product,
                            joined(before, own[2]).product, joined(before, own[3]).product);
        __syncthreads();   // the ends have been read
    }
}
