// Sum over 2 * RADIUS + 1 neighbours; the tile's halo is loaded by the first threads.
template <int RADIUS, int BLOCK>
__global__ void stencil_1d(const int* in, int* out, int n) {
    __shared__ int temp[BLOCK + 2 * RADIUS];
    int gindex = threadIdx.x + blockIdx.x * BLOCK;
    int lindex = threadIdx.x + RADIUS;

    temp[lindex] = gindex < n ? in[gindex] : 0;
    if (threadIdx.x < RADIUS) {
        int left = gindex - RADIUS, right = gindex + BLOCK;
        temp[lindex - RADIUS] = left >= 0 && left < n ? in[left] : 0;
        temp[lindex + BLOCK] = right < n ? in[right] : 0;
    }
    __syncthreads();

    if (gindex >= n) return;
    int result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[lindex + offset];
    out[gindex] = result;
}
