/* evoengine
name: resize_blended_rows
precision: fp32
summary: a block has a row of the result; it blends the two rows of the source in shared memory, then columns from there
launches:
  - kernel: resize
    grid: [OH, "B*C"]
    block: [128]
    shared: 4 * W
    args: [x, out, H, W, OH, OW, {value: H/OH, dtype: float32}, {value: W/OW, dtype: float32}]
*/
struct Source {
    int low, high;
    float part;  // of `high`
};

__device__ __forceinline__ Source source_of(int place, float ratio, int size) {
    const float exact = fmaxf((place + 0.5f) * ratio - 0.5f, 0.0f);
    const int low = min(int(exact), size - 1);
    return {low, min(low + 1, size - 1), exact - low};
}

__global__ void __launch_bounds__(128)
resize(const float* __restrict__ x, float* __restrict__ out, int H, int W, int OH, int OW, float ratio_y, float ratio_x) {
    extern __shared__ float blended[];
    const int row = blockIdx.x, image = blockIdx.y;
    const Source y = source_of(row, ratio_y, H);
    const float* upper = x + (size_t(image) * H + y.low) * W;
    const float* lower = x + (size_t(image) * H + y.high) * W;
    for (int i = threadIdx.x; i < W; i += 128) blended[i] = upper[i] + y.part * (lower[i] - upper[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < OW; i += 128) {
        const Source at = source_of(i, ratio_x, W);
        out[(size_t(image) * OH + row) * OW + i] = blended[at.low] + at.part * (blended[at.high] - blended[at.low]);
    }
}
