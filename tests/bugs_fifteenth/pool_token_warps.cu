/* evoengine
name: pool_token_warps
precision: fp32
summary: a block has 64 columns of a sequence, two a lane, and its eight warps take the tokens in turn; sums, maxima and counts of the warps are joined in a tree in shared memory
launches:
  - kernel: pool
    grid: ["ceil_div(C, 64)", B]
    block: [32, 8]
    args: [x, mask, mean, peak, S, "C // 2"]
*/
#include <cuda_fp16.h>

constexpr int WARPS = 8;

__global__ void __launch_bounds__(32 * WARPS)
pool(const __half2* __restrict__ x, const bool* __restrict__ mask, float2* __restrict__ mean,
     float2* __restrict__ peak, int S, int pairs) {
    __shared__ float2 sums[WARPS][32], peaks[WARPS][32];
    __shared__ int counts[WARPS];
    const int lane = threadIdx.x, warp = threadIdx.y, batch = blockIdx.y, pair = blockIdx.x * 32 + lane;
    const __half2* source = x + size_t(batch) * S * pairs + pair;

    float2 sum = make_float2(0.0f, 0.0f), largest = make_float2(-INFINITY, -INFINITY);
    int count = 0;
    for (int t = warp; t < S; t += WARPS) {
        if (!mask[batch * S + t]) continue;
        ++count;
        if (pair >= pairs) continue;
        const float2 value = __half22float2(source[size_t(t) * pairs]);
        sum.x += value.x;
        sum.y += value.y;
        largest.x = fmaxf(largest.x, value.x);
        largest.y = fmaxf(largest.y, value.y);
    }
    sums[warp][lane] = sum;
    peaks[warp][lane] = largest;
    if (lane == 0) counts[warp] = count;
    __syncthreads();

    for (int step = WARPS / 2; step > 0; step /= 2) {
        if (warp < step) {
            const float2 more = sums[warp + step][lane], rival = peaks[warp + step][lane];
            sums[warp][lane].x += more.x;
            sums[warp][lane].y += more.y;
            peaks[warp][lane].x = fmaxf(peaks[warp][lane].x, rival.x);
            peaks[warp][lane].y = fmaxf(peaks[warp][lane].y, rival.y);
            if (lane == 0) counts[warp] += counts[warp + step];
        }
        __syncthreads();
    }

    if (warp > 0 || pair >= pairs) return;
    const int tokens = counts[0];
    const float share = 1.0f / max(tokens, 1);
    const size_t target = size_t(batch) * pairs + pair;
    mean[target] = make_float2(sums[0][lane].x * share, sums[0][lane].y * share);
    peak[target] = tokens > 0 ? peaks[0][lane] : make_float2(0.0f, 0.0f);
}
