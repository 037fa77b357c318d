// One step of the heat equation, five points, tile with halo in shared memory.
#define BX 16
#define BY 8

extern "C" __global__ void stencil_2d(const double* __restrict__ u, double* __restrict__ next, int nx, int ny, double alpha) {
    __shared__ double tile[BY + 2][BX + 2];
    const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    const bool inside = x < nx && y < ny;

    if (inside) {
        tile[ty][tx] = u[y * nx + x];
        if (threadIdx.x == 0 && x > 0) tile[ty][0] = u[y * nx + x - 1];
        if (threadIdx.x == BX - 1 && x + 1 < nx) tile[ty][BX + 1] = u[y * nx + x + 1];
        if (threadIdx.y == 0 && y > 0) tile[0][tx] = u[(y - 1) * nx + x];
        if (threadIdx.y == BY - 1 && y + 1 < ny) tile[BY + 1][tx] = u[(y + 1) * nx + x];
    }
    __syncthreads();
    if (!inside) return;

    double c = tile[ty][tx];
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
        double sum = __dadd_rn(__dadd_rn(tile[ty][tx - 1], tile[ty][tx + 1]), __dadd_rn(tile[ty - 1][tx], tile[ty + 1][tx]));
        c = fma(alpha, fma(-4.0, c, sum), c);
    }
    next[y * nx + x] = c;
}
