/* evoengine
name: bodies_shared_tiles
precision: fp32
summary: a thread a body; blocks pass by tiles of 128 bodies in shared memory
launches:
  - kernel: pull
    grid: [N // 128]
    block: [128]
    args: [at, out, N]
*/
__global__ void __launch_bounds__(128) pull(const float4* __restrict__ at, float4* __restrict__ out, int N) {
    __shared__ float4 tile[128];
    const float4 own = at[blockIdx.x * 128 + threadIdx.x];
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int first = 0; first < N; first += 128) {
        tile[threadIdx.x] = at[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < 128; ++i) {
            const float4 other = tile[i];
            const float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
            const float inverse = rsqrtf(x * x + y * y + z * z + 0.01f), potential = other.w * inverse, factor = potential * inverse * inverse;
            sum.x += x * factor, sum.y += y * factor, sum.z += z * factor, sum.w += potential;
        }
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
