/* evoengine
name: scan_rows_block_chunks
precision: fp32
summary: a block a row, chunk after chunk; a thread scans four numbers, warps by shuffles, the block through shared memory, and the sum is carried on
launches:
  - kernel: scan
    grid: [N]
    block: [256]
    args: [x, out, L]
*/
__global__ void __launch_bounds__(256)
scan(const float* __restrict__ x, float* __restrict__ out, int L) {
    __shared__ float of_warp[8];
    const float4* from = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * L);
    float4* to = reinterpret_cast<float4*>(out + size_t(blockIdx.x) * L);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carried = 0.0f;
    for (int first = 0; first < L / 4; first += 256) {
        const int at = first + threadIdx.x;
        float4 v = at < L / 4 ? from[at] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        v.y += v.x, v.z += v.y, v.w += v.z;
        float before = v.w;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const float other = __shfl_up_sync(~0u, before, step);
            if (lane >= step) before += other;
        }
        if (lane == 31) of_warp[warp] = before;
        before -= v.w;
        __syncthreads();
        float all = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (i == warp) before += carried + all;
            all += of_warp[i];
        }
        carried += all;
        __syncthreads();   // all have read the sums of the warps
        if (at < L / 4) to[at] = make_float4(v.x + before, v.y + before, v.z + before, v.w + before);
    }
}
