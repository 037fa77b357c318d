/* evoengine
name: nearest_centres_in_shared
precision: fp32
summary: a thread a point in registers, which passes by the centres in shared memory
launches:
  - kernel: nearest
    grid: ["ceil_div(N, 256)"]
    block: [256]
    shared: 64 * K
    args: [points, centres, out, N, K]
*/
__global__ void __launch_bounds__(256) nearest(const float4* __restrict__ points, const float4* __restrict__ centres, float* __restrict__ out, int N, int K) {
    extern __shared__ float4 shared[];
    for (int i = threadIdx.x; i < K * 4; i += 256) shared[i] = centres[i];
    __syncthreads();
    const int own = blockIdx.x * 256 + threadIdx.x;
    if (own >= N) return;
    float4 p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = points[own * 4 + i];
    float least = 1e38f;
    for (int k = 0; k < K; ++k) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float4 c = shared[k * 4 + i];
            const float x = p[i].x - c.x, y = p[i].y - c.y, z = p[i].z - c.z, w = p[i].w - c.w;
            sum += x * x + y * y + z * z + w * w;
        }
        least = fminf(least, sum);
    }
    out[own] = least;
}
