/* evoengine
name: codes_vector_groups
precision: fp32
summary: a thread rounds four neighbouring values, which have one step and one zero, and stores four codes at once
launches:
  - kernel: encode
    grid: ["ceil_div(N * K // 4, 128)"]
    block: [128]
    args: [x, steps, zeros, codes, restored, N, K, GROUP]
*/
__device__ __forceinline__ int code_of(float value, float inverse, int zero) {
    const int code = __float2int_rn(value * inverse) + zero;
    return max(-128, min(127, code));
}

__device__ __forceinline__ float value_of(int code, float step, int zero) { return (code - zero) * step; }

__global__ void __launch_bounds__(128)
encode(const float* __restrict__ x, const float* __restrict__ steps, const signed char* __restrict__ zeros,
       signed char* __restrict__ codes, float* __restrict__ restored, int N, int K, int group) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= N * K / 4) return;
    const int row = i / (K / 4), column = i % (K / 4) * 4;
    const int at = row * (K / group) + column / group;
    const float step = steps[at], inverse = 1.0f / step;
    const int zero = zeros[at];
    const float4 value = reinterpret_cast<const float4*>(x)[i];
    const int a = code_of(value.x, inverse, zero), b = code_of(value.y, inverse, zero);
    const int c = code_of(value.z, inverse, zero), d = code_of(value.w, inverse, zero);
    reinterpret_cast<char4*>(codes)[i] = make_char4(a, b, c, d);
    reinterpret_cast<float4*>(restored)[i] =
        make_float4(value_of(a, step, zero), value_of(b, step, zero), value_of(c, step, zero), value_of(d, step, zero));
}
