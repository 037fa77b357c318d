// The usual guard before a barrier: part of the last warp has returned when the rest reaches __syncthreads.
extern "C" __global__ void early_return_partial_warp(const int* in, int* out, int n) {
    __shared__ int s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    int last = min((int)blockDim.x, n - (int)(blockIdx.x * blockDim.x)) - 1;
    s[threadIdx.x] = in[i];
    __syncthreads();
    int mirrored = s[last - threadIdx.x];
    __syncthreads();
    if (threadIdx.x % 3 == 1) {
        out[i] = mirrored * 2;
        return;
    }
    s[threadIdx.x] = mirrored;
    __syncthreads();
    int before = threadIdx.x % 3 == 2 && threadIdx.x >= 2 ? s[threadIdx.x - 2] : 5;
    out[i] = mirrored + before;
}
