/* evoengine
name: prefix_split_keys
precision: fp32
summary: four warps of a block take tiles of 32 keys in turn for one query, and merge their parts
launches:
  - kernel: attend
    grid: [S, H, B]
    block: [128]
    args: [q, k, v, out, H, S, T, scale]
*/
constexpr int D = 32, WARPS = 4;
constexpr float LOG2E = 1.4426950408889634f;

__device__ float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__global__ void attend(const float* q, const float* k, const float* v, float* out, int H, int S, int T,
                       float scale) {
    __shared__ float query[D];
    __shared__ float part_max[WARPS], part_sum[WARPS], part_out[WARPS][D];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int plane = blockIdx.z * H + blockIdx.y, row = blockIdx.x;
    const float* keys = k + size_t(plane) * T * D;
    const float* values = v + size_t(plane) * T * D;
    if (warp == 0) query[lane] = q[(size_t(plane) * S + row) * D + lane] * (scale * LOG2E);
    __syncthreads();

    const int last = T - S + row;  // the position of this query
    float top = -1e30f, total = 0.0f, sum = 0.0f;
    for (int start = warp * 32; start <= last; start += WARPS * 32) {
        const int key = start + lane;
        float score = -1e30f;
        if (key <= last) {
            score = 0.0f;
            for (int d = 0; d < D; ++d) score += query[d] * keys[size_t(key) * D + d];
        }
        const float high = fmaxf(top, warp_max(score));
        const float shrink = exp2f(top - high);
        const float weight = key <= last ? exp2f(score - high) : 0.0f;
        total = total * shrink + warp_sum(weight);
        sum *= shrink;
        for (int j = 0; j < 32; ++j) {
            const float w = __shfl_sync(~0u, weight, j);
            if (start + j < T) sum += w * values[size_t(start + j) * D + lane];
        }
        top = high;
    }
    if (lane == 0) part_max[warp] = top;
    if (lane == 0) part_sum[warp] = total;
    part_out[warp][lane] = sum;
    __syncthreads();
    if (warp > 0) return;
    float highest = part_max[0];
    for (int w = 1; w < WARPS; ++w) highest = fmaxf(highest, part_max[w]);
    float whole = 0.0f, merged = 0.0f;
    for (int w = 0; w < WARPS; ++w) {
        const float factor = exp2f(part_max[w] - highest);
        whole += factor * part_sum[w];
        merged += factor * part_out[w][lane];
    }
    out[(size_t(plane) * S + row) * D + lane] = merged / whole;
}
