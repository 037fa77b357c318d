// Threads beyond the end leave before they have loaded their part of the tile.
__global__ void __launch_bounds__(64) returned_without_loading(const float* in, float* out, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
#ifndef FIXED
    if (t >= n) return;
#endif
    tile[t] = t < n ? in[t] : 0.0f;
    __syncthreads();
    if (t >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i) sum += tile[i];    // FAULT
    out[t] = sum;
}
