/* evoengine
name: bag_four_teams
precision: fp32
summary: a block a bag; four teams of sixteen threads each add every fourth row, sixteen packs of columns at a time
launches:
  - kernel: bags
    grid: [BAGS]
    block: [16, 4]
    args: [table, indices, offsets, out, D]
*/

constexpr int TEAMS = 4, WIDTH = 16;

__device__ __forceinline__ float4 plus(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__global__ void __launch_bounds__(64)
bags(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float4* __restrict__ out, int D) {
    __shared__ float4 parts[TEAMS][WIDTH];
    const int bag = blockIdx.x, team = threadIdx.y, columns = D / 4;
    const int begin = offsets[bag], end = offsets[bag + 1];
    for (int base = 0; base < columns; base += WIDTH) {
        const int column = base + threadIdx.x;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (column < columns)
            for (int i = begin + team; i < end; i += TEAMS) sum = plus(sum, table[size_t(indices[i]) * columns + column]);
        parts[team][threadIdx.x] = sum;
        __syncthreads();   // the sums of all teams are there
        if (team == 0 && column < columns) {
            for (int other = 1; other < TEAMS; ++other) sum = plus(sum, parts[other][threadIdx.x]);
            out[size_t(bag) * columns + column] = sum;
        }
        __syncthreads();   // and have been read
    }
}
