/* evoengine
name: small_products_warp_each
precision: fp32
summary: a warp a product; a lane has half a row of a and half a column of b in registers, and reads those of others by shuffles
launches:
  - kernel: multiply
    grid: ["ceil_div(B, 4)"]
    block: [128]
    args: [a, b, out, B]
*/
// Lane 2 r + h has row r of a from column 8 h on, and computes out[r][8 h ...]; it has row r of b from column 8 h on.
__global__ void __launch_bounds__(128)
multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int B) {
    const int matrix = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (matrix >= B) return;
    float left[8], right[8], sum[8] = {};
    const float4* from_a = reinterpret_cast<const float4*>(a + size_t(matrix) * 256) + lane * 2;
    const float4* from_b = reinterpret_cast<const float4*>(b + size_t(matrix) * 256) + lane * 2;
    *reinterpret_cast<float4*>(left) = from_a[0];
    *reinterpret_cast<float4*>(left + 4) = from_a[1];
    *reinterpret_cast<float4*>(right) = from_b[0];
    *reinterpret_cast<float4*>(right + 4) = from_b[1];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        const float factor = __shfl_sync(~0u, left[k % 8], (lane & ~1) + k / 8);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[j] += factor * __shfl_sync(~0u, right[j], 2 * k + lane % 2);
    }
    float4* to = reinterpret_cast<float4*>(out + size_t(matrix) * 256) + lane * 2;
    to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
}
