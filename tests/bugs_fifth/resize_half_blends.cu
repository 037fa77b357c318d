/* evoengine
name: resize_half_blends
precision: fp16
summary: as resize_blended_rows, with the blended row rounded to half precision
launches:
  - kernel: resize
    grid: [OH, "B*C"]
    block: [128]
    shared: 2 * W
    args: [x, out, H, W, OH, OW, {value: H/OH, dtype: float32}, {value: W/OW, dtype: float32}]
*/
#include <cuda_fp16.h>

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
    extern __shared__ half blended[];
    const int row = blockIdx.x, image = blockIdx.y;
    const Source y = source_of(row, ratio_y, H);
    const float* upper = x + (size_t(image) * H + y.low) * W;
    const float* lower = x + (size_t(image) * H + y.high) * W;
    for (int i = threadIdx.x; i < W; i += 128) blended[i] = __float2half(upper[i] + y.part * (lower[i] - upper[i]));
    __syncthreads();
    for (int i = threadIdx.x; i < OW; i += 128) {
        const Source at = source_of(i, ratio_x, W);
        const float from = __half2float(blended[at.low]);
        out[(size_t(image) * OH + row) * OW + i] = from + at.part * (__half2float(blended[at.high]) - from);
    }
}
