// Keeps the positive elements of each block's part, in order: ballot and popc for places, a scan over the warps.
extern "C" __global__ void compact_ballot(const int* in, int* out, int* counts, int n) {
    __shared__ int warp_offset[33];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int v = i < n ? in[i] : 0;
    const bool keep = v > 0;

    unsigned ballot = __ballot_sync(0xffffffffu, keep);
    unsigned lanemask_lt;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanemask_lt));
    int place = __popc(ballot & lanemask_lt);
    if (lane == 0) warp_offset[warp + 1] = __popc(ballot);
    if (threadIdx.x == 0) warp_offset[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w <= blockDim.x / 32; ++w) warp_offset[w] += warp_offset[w - 1];
    __syncthreads();

    if (keep) out[blockIdx.x * blockDim.x + warp_offset[warp] + place] = v;
    if (threadIdx.x == 0) counts[blockIdx.x] = warp_offset[blockDim.x / 32];
}
