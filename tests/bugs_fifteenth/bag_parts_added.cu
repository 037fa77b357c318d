/* evoengine
name: bag_parts_added
precision: fp32
summary: four blocks share a bag and leave the sum of a part of its rows each, four teams in a block read the index of their next row ahead; a second launch adds the parts
scratch:
  parts: {dtype: float32, shape: [4, BAGS, D]}
launches:
  - kernel: sum_parts
    grid: [BAGS, 4]
    block: [32, 4]
    args: [table, indices, offsets, parts, BAGS, "D // 4"]
  - kernel: add_parts
    grid: ["ceil_div(BAGS*D, 1024)"]
    block: [256]
    args: [parts, out, "BAGS*D // 4"]
*/
constexpr int PARTS = 4, TEAMS = 4;

__device__ __forceinline__ void add(float4& sum, const float4& other) {
    sum.x += other.x;
    sum.y += other.y;
    sum.z += other.z;
    sum.w += other.w;
}

__global__ void __launch_bounds__(32 * TEAMS)
sum_parts(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
          float4* __restrict__ parts, int bags, int width) {
    __shared__ float4 sums[TEAMS][32];
    const int bag = blockIdx.x, part = blockIdx.y, team = threadIdx.y;
    const int start = offsets[bag], count = offsets[bag + 1] - start;
    const int begin = start + count * part / PARTS, end = start + count * (part + 1) / PARTS;

    for (int columns = 0; columns < width; columns += 32) {
        const int column = columns + threadIdx.x;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        int index = begin + team < end ? indices[begin + team] : 0;
        for (int i = begin + team; i < end; i += TEAMS) {
            const int next = i + TEAMS < end ? indices[i + TEAMS] : 0;
            if (column < width) add(sum, table[size_t(index) * width + column]);
            index = next;
        }
        sums[team][threadIdx.x] = sum;
        __syncthreads();
        if (team == 0 && column < width) {
#pragma unroll
            for (int other = 1; other < TEAMS; ++other) add(sum, sums[other][threadIdx.x]);
            parts[(size_t(part) * bags + bag) * width + column] = sum;
        }
        __syncthreads();   // before the sums of the next columns
    }
}

__global__ void __launch_bounds__(256)
add_parts(const float4* __restrict__ parts, float4* __restrict__ out, int vectors) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= vectors) return;
    float4 sum = parts[i];
#pragma unroll
    for (int part = 1; part < PARTS; ++part) add(sum, parts[size_t(part) * vectors + i]);
    out[i] = sum;
}
