/* evoengine
name: norm_vector_rows
precision: fp32
summary: a block of four warps has a row in vectors of four, with two reductions
launches:
  - kernel: normalise
    grid: [N]
    block: [128]
    args: [x, residual, weight, bias, out, total, D, eps]
*/
constexpr int WARPS = 4, VECTORS = 2;  // up to 1024 columns

__device__ float block_sum(float value, float* shared) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float whole = 0.0f;
    for (int w = 0; w < WARPS; ++w) whole += shared[w];
    return whole;
}

__global__ void normalise(const float* x, const float* residual, const float* weight, const float* bias, float* out,
                     float* total, int D, float eps) {
    __shared__ float shared[WARPS];
    const int vectors = D / 4;
    const float4* own = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * D);
    const float4* other = reinterpret_cast<const float4*>(residual + size_t(blockIdx.x) * D);
    float4 item[VECTORS];
    float sum = 0.0f;
    for (int i = 0; i < VECTORS; ++i) {
        const int at = threadIdx.x + i * 128;
        item[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (at < vectors) {
            const float4 left = own[at], right = other[at];
            item[i] = make_float4(left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w);
            reinterpret_cast<float4*>(total + size_t(blockIdx.x) * D)[at] = item[i];
        }
        sum += item[i].x + item[i].y + item[i].z + item[i].w;
    }
    const float mean = block_sum(sum, shared) / D;
    float squares = 0.0f;
    for (int i = 0; i < VECTORS; ++i) {
        if (threadIdx.x + i * 128 >= vectors) continue;
        const float a = item[i].x - mean, b = item[i].y - mean, c = item[i].z - mean, d = item[i].w - mean;
        squares += a * a + b * b + c * c + d * d;
    }
    const float inverse = rsqrtf(block_sum(squares, shared) / D + eps);
    for (int i = 0; i < VECTORS; ++i) {
        const int at = threadIdx.x + i * 128;
        if (at >= vectors) continue;
        const float4 scale = reinterpret_cast<const float4*>(weight)[at];
        const float4 shift = reinterpret_cast<const float4*>(bias)[at];
        float4 made;
        made.x = (item[i].x - mean) * inverse * scale.x + shift.x;
        made.y = (item[i].y - mean) * inverse * scale.y + shift.y;
        made.z = (item[i].z - mean) * inverse * scale.z + shift.z;
        made.w = (item[i].w - mean) * inverse * scale.w + shift.w;
        reinterpret_cast<float4*>(out + size_t(blockIdx.x) * D)[at] = made;
    }
}
