/* evoengine
name: gemv_warp_rows
precision: fp32
summary: a warp has a row, a lane takes four codes at a time
launches:
  - kernel: gemv
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [codes, scales, x, out, N, K, GROUP]
*/
__global__ void gemv(const signed char* codes, const float* scales, const float* x, float* out, int N, int K,
                     int GROUP) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= N) return;
    const int* words = reinterpret_cast<const int*>(codes + size_t(row) * K);
    const float* steps = scales + size_t(row) * (K / GROUP);
    float sum = 0.0f;
    for (int at = lane; at < K / 4; at += 32) {
        const int word = words[at];
        const float scale = steps[at * 4 / GROUP];
        float part = 0.0f;
        for (int j = 0; j < 4; ++j) {
            const int code = static_cast<signed char>(word >> (8 * j));
            part += code * x[at * 4 + j];
        }
        sum += part * scale;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) out[row] = sum;
}
