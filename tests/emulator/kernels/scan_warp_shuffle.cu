// One block scans the whole array tile by tile: shuffles up within warps, then over the warps, then a running carry.
__device__ __forceinline__ int warp_inclusive_scan(int v, int lane) {
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += other;
    }
    return v;
}

extern "C" __global__ void scan_warp_shuffle(const int* __restrict__ in, int* __restrict__ out, int n) {
    __shared__ int warp_sums[32];
    __shared__ int carry;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    if (threadIdx.x == 0) carry = 0;
    __syncthreads();

    for (int base = 0; base < n; base += blockDim.x) {
        int i = base + threadIdx.x;
        int v = warp_inclusive_scan(i < n ? in[i] : 0, lane);
        if (lane == 31) warp_sums[warp] = v;
        __syncthreads();
        if (warp == 0) {
            int s = lane < warps ? warp_sums[lane] : 0;
            s = warp_inclusive_scan(s, lane);
            warp_sums[lane] = s;
        }
        __syncthreads();
        int before = carry + (warp > 0 ? warp_sums[warp - 1] : 0);
        if (i < n) out[i] = before + v;
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) carry = before + v;
        __syncthreads();
    }
}
