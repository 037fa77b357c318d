/* evoengine
name: rms_norm_padded_row
precision: fp32
summary: the row in shared memory is read four floats at a time, beyond its end as well, and what lies there is left out
let:
  PITCH: round_up(C, 4)
require:
  - 4 * PITCH <= MAX_SHARED_BYTES - 1024
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    shared: 4 * PITCH
    args: [x, weight, out, C, eps]
*/
// Up to three floats behind the row are loaded without ever having been written. A select drops them: a product with zero
// would not, because they may be NaN.
__global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int C, float eps) {
    extern __shared__ __align__(16) float row[];
    __shared__ float warps[4];
    for (int i = threadIdx.x; i < C; i += 128) row[i] = x[(size_t)blockIdx.x * C + i];
    __syncthreads();
    float s = 0.0f;
    for (int i = threadIdx.x * 4; i < C; i += 512) {
        const float4 v = *reinterpret_cast<const float4*>(row + i);
        const float y = i + 1 < C ? v.y : 0.0f, z = i + 2 < C ? v.z : 0.0f, w = i + 3 < C ? v.w : 0.0f;
        s += v.x * v.x + y * y + z * z + w * w;
    }
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
    __syncthreads();
    const float scale = 1.0f / sqrtf((warps[0] + warps[1] + warps[2] + warps[3]) / C + eps);
    for (int i = threadIdx.x; i < C; i += 128) out[(size_t)blockIdx.x * C + i] = row[i] * scale * weight[i];
}
