/* evoengine
name: glu_row_slices
precision: fp32
summary: a block has 64 columns of both halves and a slice of the rows; a second launch adds the sums of the slices
let:
  SLICES: 4
  ROWS: ceil_div(N, SLICES)
scratch:
  parts: {shape: [SLICES, 2 * H], dtype: float32}
launches:
  - kernel: gradients
    grid: ["ceil_div(H, 64)", SLICES]
    block: [32, 8]
    args: [x, grad, dx, parts, N, H, ROWS]
  - kernel: add_slices
    grid: ["ceil_div(2 * H, 128)"]
    block: [128]
    args: [parts, dbias, H, SLICES]
*/
__global__ void __launch_bounds__(256)
gradients(const float* __restrict__ x, const float* __restrict__ grad, float* __restrict__ dx, float* __restrict__ parts,
          int N, int H, int rows) {
    __shared__ float4 sums[8][32];
    const int column = (blockIdx.x * 32 + threadIdx.x) * 2;
    const int first = blockIdx.y * rows, end = min(first + rows, N);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (column < H)
        for (int row = first + threadIdx.y; row < end; row += 8) {
            const float2 gate = *reinterpret_cast<const float2*>(x + size_t(row) * 2 * H + column);
            const float2 up = *reinterpret_cast<const float2*>(x + size_t(row) * 2 * H + H + column);
            const float2 g = *reinterpret_cast<const float2*>(grad + size_t(row) * H + column);
            const float gates[2] = {gate.x, gate.y}, ups[2] = {up.x, up.y}, gs[2] = {g.x, g.y};
            float of_gate[2], of_up[2];
            for (int e = 0; e < 2; ++e) {
                const float sigmoid = 1.0f / (1.0f + expf(-gates[e]));
                of_gate[e] = gs[e] * ups[e] * sigmoid * (1.0f + gates[e] * (1.0f - sigmoid));
                of_up[e] = gs[e] * gates[e] * sigmoid;
            }
            float* to = dx + size_t(row) * 2 * H + column;
            *reinterpret_cast<float2*>(to) = make_float2(of_gate[0], of_gate[1]);
            *reinterpret_cast<float2*>(to + H) = make_float2(of_up[0], of_up[1]);
            sum.x += of_gate[0];
            sum.y += of_gate[1];
            sum.z += of_up[0];
            sum.w += of_up[1];
        }
    sums[threadIdx.y][threadIdx.x] = sum;
    for (int step = 4; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.y < step) {
            const float4 other = sums[threadIdx.y + step][threadIdx.x];
            float4& own = sums[threadIdx.y][threadIdx.x];
            own = make_float4(own.x + other.x, own.y + other.y, own.z + other.z, own.w + other.w);
        }
    }
    if (threadIdx.y > 0 || column >= H) return;
    const float4 whole = sums[0][threadIdx.x];
    float* to = parts + size_t(blockIdx.y) * 2 * H + column;
    *reinterpret_cast<float2*>(to) = make_float2(whole.x, whole.y);
    *reinterpret_cast<float2*>(to + H) = make_float2(whole.z, whole.w);
}

__global__ void __launch_bounds__(128)
add_slices(const float* __restrict__ parts, float* __restrict__ dbias, int H, int slices) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= 2 * H) return;
    float sum = 0.0f;
    for (int s = 0; s < slices; ++s) sum += parts[size_t(s) * 2 * H + i];
    dbias[i] = sum;
}
