/* evoengine
name: conv2d_tf32_operands
precision: tf32
summary: operands are rounded to tf32, sums are in single precision
launches:
  - kernel: conv2d
    grid: ["ceil_div(H*W, 128)", K, N]
    block: [128]
    args: [x, weight, bias, out, C, H, W, K]
*/
__device__ float rounded(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

__global__ void conv2d(const float* x, const float* weight, const float* bias, float* out, int C, int H, int W, int K) {
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    if (pixel >= H * W) return;
    const int oy = pixel / W, ox = pixel % W;
    const int k = blockIdx.y, n = blockIdx.z;
    const float* image = x + size_t(n) * C * H * W;
    const float* filter = weight + size_t(k) * C * 9;
    float sum = bias[k];
    for (int c = 0; c < C; ++c)
        for (int ky = 0; ky < 3; ++ky)
            for (int kx = 0; kx < 3; ++kx) {
                const int iy = oy + ky - 1, ix = ox + kx - 1;
                if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
                sum += rounded(image[(c * H + iy) * W + ix]) * rounded(filter[c * 9 + ky * 3 + kx]);
            }
    out[((size_t(n) * K + k) * H + oy) * W + ox] = sum;
}
