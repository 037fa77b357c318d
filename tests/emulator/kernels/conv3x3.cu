// 3 x 3 convolution over channels with zero padding, one image a block layer (gridDim.z); the filter sits in registers.
__global__ void conv3x3(const float* __restrict__ image, const float* __restrict__ filter, float* __restrict__ out, int channels, int h,
                        int w) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int b = blockIdx.z;
    if (x >= w || y >= h) return;

    float acc = 0.0f;
    for (int c = 0; c < channels; ++c) {
        float k[9];
#pragma unroll
        for (int i = 0; i < 9; ++i) k[i] = __ldg(filter + c * 9 + i);
        const float* plane = image + (size_t)(b * channels + c) * h * w;
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
            for (int dx = -1; dx <= 1; ++dx) {
                int yy = y + dy, xx = x + dx;
                if (yy < 0 || yy >= h || xx < 0 || xx >= w) continue;
                acc = fmaf(plane[yy * w + xx], k[(dy + 1) * 3 + dx + 1], acc);
            }
        }
    }
    out[((size_t)b * h + y) * w + x] = acc;
}
