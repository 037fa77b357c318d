// Escape times; every lane leaves its loop when its point escapes. Roundings are spelled out, so that counts are exact.
extern "C" __global__ void mandelbrot(unsigned short* out, int width, int height, float x0, float y0, float step, int max_iter) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;

    float cx = __fadd_rn(x0, __fmul_rn((float)px, step));
    float cy = __fadd_rn(y0, __fmul_rn((float)py, step));
    float zx = 0.0f, zy = 0.0f;
    int iter = 0;
    while (iter < max_iter) {
        float xx = __fmul_rn(zx, zx), yy = __fmul_rn(zy, zy);
        if (__fadd_rn(xx, yy) > 4.0f) break;
        zy = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, zx), zy), cy);
        zx = __fadd_rn(__fsub_rn(xx, yy), cx);
        ++iter;
    }
    out[py * width + px] = iter;
}
