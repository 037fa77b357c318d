// One generation on a torus of bytes; the block's part and its halo are staged by all threads together.
extern "C" __global__ void game_of_life(const unsigned char* in, unsigned char* out, int width, int height) {
    extern __shared__ unsigned char cells[];
    const int tw = blockDim.x + 2, th = blockDim.y + 2;
    const int x0 = blockIdx.x * blockDim.x - 1, y0 = blockIdx.y * blockDim.y - 1;
    for (int k = threadIdx.y * blockDim.x + threadIdx.x; k < tw * th; k += blockDim.x * blockDim.y) {
        int gx = (x0 + k % tw + width) % width, gy = (y0 + k / tw + height) % height;
        cells[k] = in[gy * width + gx];
    }
    __syncthreads();
    const int x = x0 + 1 + threadIdx.x, y = y0 + 1 + threadIdx.y;
    if (x < width && y < height) {
        const unsigned char* c = cells + (threadIdx.y + 1) * tw + threadIdx.x + 1;
        int alive = c[-tw - 1] + c[-tw] + c[-tw + 1] + c[-1] + c[1] + c[tw - 1] + c[tw] + c[tw + 1];
        out[y * width + x] = alive == 3 || (alive == 2 && *c);
    }
}
