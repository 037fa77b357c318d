// Threads and blocks in three dimensions, none a multiple of 32; every coordinate is written down, and neighbours in z are exchanged.
extern "C" __global__ void odd_blocks_3d(int* where, int* exchanged, unsigned int* lanes, int nx, int ny, int nz) {
    extern __shared__ int s[];
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int code = x + 100 * y + 10000 * z;
    s[t] = code;
    __syncthreads();
    int up = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * ((threadIdx.z + 1) % blockDim.z));
    if (x < nx && y < ny && z < nz) {
        int at = (z * ny + y) * nx + x;
        where[at] = code;
        exchanged[at] = s[up];
        unsigned int lane;
        asm("mov.u32 %0, %%laneid;" : "=r"(lane));
        lanes[at] = lane + 32 * (t / 32) + 1000 * gridDim.x + 10000 * gridDim.y + 100000 * gridDim.z;
    }
}
