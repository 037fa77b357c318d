/* evoengine
name: nf4_two_warps_a_row
precision: fp32
summary: two warps have a row, a lane eight codes at once; the codebook lies in shared memory, where the two warps also meet
launches:
  - kernel: multiply_rows
    grid: ["ceil_div(M, 4)"]
    block: [64, 4]
    args: [x, codes, scales, book, out, M, K]
*/
constexpr int LANES = 64, ROWS = 4, GROUP = 64;

__global__ void __launch_bounds__(LANES * ROWS)
multiply_rows(const float* __restrict__ x, const unsigned* __restrict__ codes, const float* __restrict__ scales,
              const float* __restrict__ book, float* __restrict__ out, int M, int K) {
    __shared__ float numbers[16], halves[ROWS][2];
    const int row = blockIdx.x * ROWS + threadIdx.y, words = K / 8;
    if (threadIdx.y == 0 && threadIdx.x < 16) numbers[threadIdx.x] = book[threadIdx.x];
    __syncthreads();

    float sum = 0.0f;
    if (row < M) {
        for (int w = threadIdx.x; w < words; w += LANES) {
            const unsigned word = codes[size_t(row) * words + w];
            float part = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const unsigned byte = word >> (j * 8) & 255u;   // the first of its two codes is the upper one
                part = fmaf(numbers[byte >> 4], x[w * 8 + j * 2], part);
                part = fmaf(numbers[byte & 15u], x[w * 8 + j * 2 + 1], part);
            }
            sum = fmaf(part, scales[size_t(row) * (K / GROUP) + w / 8], sum);
        }
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x % 32 == 0) halves[threadIdx.y][threadIdx.x / 32] = sum;
    __syncthreads();
    if (row < M && threadIdx.x == 0) out[row] = halves[threadIdx.y][0] + halves[threadIdx.y][1];
}
