/* evoengine
name: norm_codes_warp_rows
precision: fp32
summary: a warp a row; squares and the largest weighted value in one pass, codes packed four to a word in a second
tunables:
  ROWS: [4, 8]
launches:
  - kernel: norm_codes
    grid: ["ceil_div(N, ROWS)"]
    block: [32, ROWS]
    args: [x, weight, codes, steps, N, C, eps]
*/

__global__ void __launch_bounds__(32 * ROWS)
norm_codes(const float4* __restrict__ x, const float4* __restrict__ weight, signed char* __restrict__ codes,
           float* __restrict__ steps, int N, int C, float eps) {
    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= N) return;
    const int fours = C / 4;
    const float4* source = x + size_t(row) * fours;

    float squares = 0.0f, peak = 0.0f;
    for (int i = lane; i < fours; i += 32) {
        const float4 v = source[i], w = weight[i];
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        peak = fmaxf(peak, fmaxf(fmaxf(fabsf(v.x * w.x), fabsf(v.y * w.y)), fmaxf(fabsf(v.z * w.z), fabsf(v.w * w.w))));
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
        peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, offset));
    }
    const float scale = 1.0f / sqrtf(squares / C + eps);
    const float step = peak * scale / 127.0f;
    if (lane == 0) steps[row] = step;

    const float factor = scale / step;
    unsigned* target = reinterpret_cast<unsigned*>(codes + size_t(row) * C);
    for (int i = lane; i < fours; i += 32) {
        const float4 v = source[i], w = weight[i];
        const float four[4] = {v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w};
        unsigned word = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int code = max(-127, min(127, __float2int_rn(four[j] * factor)));
            word |= (unsigned(code) & 0xffu) << (8 * j);
        }
        target[i] = word;
    }
}
