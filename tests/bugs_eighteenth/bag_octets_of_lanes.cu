/* evoengine
name: bag_octets_of_lanes
precision: fp32
summary: a warp has a bag and 32 columns; each of its four octets of lanes adds every fourth row, four columns a lane, and shuffles add the octets
launches:
  - kernel: add_rows
    grid: ["ceil_div(BAGS, 4)", "ceil_div(D, 32)"]
    block: [32, 4]
    args: [table, indices, offsets, out, BAGS, D]
*/
constexpr int LANES = 32, BAGS_A_BLOCK = 4, OCTET = 8, OCTETS = LANES / OCTET;

__global__ void __launch_bounds__(LANES * BAGS_A_BLOCK)
add_rows(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float4* __restrict__ out, int BAGS, int D) {
    const int bag = blockIdx.x * BAGS_A_BLOCK + threadIdx.y, columns = D / 4;
    if (bag >= BAGS) return;
    const int lane = threadIdx.x, octet = lane / OCTET, column = blockIdx.y * OCTET + lane % OCTET;
    const bool inside = column < columns;
    const int end = offsets[bag + 1];

    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int start = offsets[bag]; start < end; start += LANES) {
        const int count = min(LANES, end - start);
        const int index = lane < count ? indices[start + lane] : 0;
        for (int i = 0; i < count; i += OCTETS) {
            const int row = __shfl_sync(0xffffffffu, index, i + octet);
            if (i + octet < count && inside) {
                const float4 more = table[size_t(row) * columns + column];
                sum.x += more.x;
                sum.y += more.y;
                sum.z += more.z;
                sum.w += more.w;
            }
        }
    }
#pragma unroll
    for (int step = OCTET; step < LANES; step *= 2) {
        sum.x += __shfl_xor_sync(0xffffffffu, sum.x, step);
        sum.y += __shfl_xor_sync(0xffffffffu, sum.y, step);
        sum.z += __shfl_xor_sync(0xffffffffu, sum.z, step);
        sum.w += __shfl_xor_sync(0xffffffffu, sum.w, step);
    }
    if (octet == 0 && inside) out[size_t(bag) * columns + column] = sum;
}
