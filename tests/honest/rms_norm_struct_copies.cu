/* evoengine
name: rms_norm_struct_copies
precision: fp32
summary: partial sums as structures with padding, copied whole within shared memory
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    args: [x, weight, out, C, eps]
*/
struct Partial {
    float sum;
    bool used;   // three bytes of padding follow, which a copy takes along
};

__global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int C, float eps) {
    __shared__ Partial partials[128], reversed[128];
    const float* row = x + (size_t)blockIdx.x * C;
    Partial mine;
    mine.sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128) mine.sum += row[i] * row[i];
    partials[threadIdx.x].sum = mine.sum;
    partials[threadIdx.x].used = threadIdx.x < C;
    __syncthreads();
    reversed[threadIdx.x] = partials[127 - threadIdx.x];
    __syncthreads();
    float s = 0.0f;
    for (int i = 0; i < 128; ++i)
        if (reversed[i].used) s += reversed[i].sum;
    const float scale = 1.0f / sqrtf(s / C + eps);
    for (int i = threadIdx.x; i < C; i += 128) out[(size_t)blockIdx.x * C + i] = row[i] * scale * weight[i];
}
