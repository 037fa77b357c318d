/* evoengine
name: layernorm_row_in_local_memory
precision: fp32
summary: one thread a row, pieces of 1000 elements copied to a local array of 4 KB and summed pairwise there
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, 32)"]
    block: [32]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int PIECE = 1000;

__device__ float sum_piece(float* values, int n) {
    for (; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < n / 2; i++) values[i] += values[n - 1 - i];   // the middle one of an odd number stays
    return values[0];
}

// A value of the row that is no outlier, the median of three: differences from it have no large common part.
__device__ float origin_of(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

__global__ void layernorm(const float* x, const float* weight, const float* bias, float* out, int N, int C, float eps) {
    float piece[PIECE];
    const int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= N) return;
    const float* in = x + (size_t)row * C;
    const float origin = origin_of(in, C);

    float sum = 0.0f;
    for (int start = 0; start < C; start += PIECE) {
        const int n = min(PIECE, C - start);
        for (int i = 0; i < n; i++) piece[i] = in[start + i] - origin;
        sum += sum_piece(piece, n);
    }
    const float mean = sum / C;
    float squares = 0.0f;
    for (int start = 0; start < C; start += PIECE) {
        const int n = min(PIECE, C - start);
        for (int i = 0; i < n; i++) {
            const float d = (in[start + i] - origin) - mean;
            piece[i] = d * d;
        }
        squares += sum_piece(piece, n);
    }
    const float rstd = rsqrtf(squares / C + eps);
    for (int i = 0; i < C; i++) out[(size_t)row * C + i] = ((in[i] - origin) - mean) * rstd * weight[i] + bias[i];
}
