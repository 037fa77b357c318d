/* evoengine
name: rms_rotary_rows
precision: fp32
summary: a block has a token; the sum stays in shared memory until its norm is known, then threads turn pairs
launches:
  - kernel: rms_rotary
    grid: [T]
    block: [128]
    shared: 4*H*D
    args: [x, residual, weight, cosines, sines, position, summed, out, H, D, eps]
*/
constexpr int THREADS = 128, WARPS = 4;

__global__ void rms_rotary(const float* x, const float* residual, const float* weight, const float* cosines,
                           const float* sines, const int* position, float* summed, float* out, int H, int D, float eps) {
    extern __shared__ float row[];
    __shared__ float totals[WARPS];
    const int width = H * D, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t base = size_t(blockIdx.x) * width;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += THREADS) {
        const float value = x[base + i] + residual[base + i];
        row[i] = value;
        summed[base + i] = value;
        squares += value * value;
    }
    for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
    if (lane == 0) totals[warp] = squares;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < WARPS; ++w) total += totals[w];
    const float inverse = rsqrtf(total / width + eps);
    const int half_size = D / 2, angle_row = position[blockIdx.x] * half_size;
    for (int p = threadIdx.x; p < width / 2; p += THREADS) {
        const int angle = p % half_size;
        const float first = row[2 * p] * inverse * weight[2 * p];
        const float second = row[2 * p + 1] * inverse * weight[2 * p + 1];
        const float c = cosines[angle_row + angle], s = sines[angle_row + angle];
        out[base + 2 * p] = first * c - second * s;
        out[base + 2 * p + 1] = first * s + second * c;
    }
}
