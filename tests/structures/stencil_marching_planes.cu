/* evoengine
name: stencil_marching_planes
precision: fp32
summary: a block marches through the planes of a tile; the plane with its edges lies in shared memory, those before and behind in registers
tunables:
  DEPTH: [16, 8, 32]
launches:
  - kernel: stencil
    grid: ["ceil_div(W, 32)", "ceil_div(Y, 8)", "ceil_div(Z, DEPTH)"]
    block: [32, 8]
    args: [x, out, Z, Y, W, centre, side]
*/
__global__ void __launch_bounds__(256)
stencil(const float* __restrict__ x, float* __restrict__ out, int Z, int Y, int W, float centre, float side) {
    __shared__ float plane[10][34];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * 32 + tx, row = blockIdx.y * 8 + ty;
    const int z0 = blockIdx.z * DEPTH, z1 = min(z0 + DEPTH, Z);
    const bool inside = row < Y && column < W;
    auto value = [&](int z, int y, int w) {
        return z >= 0 && z < Z && y >= 0 && y < Y && w >= 0 && w < W ? x[(size_t(z) * Y + y) * W + w] : 0.0f;
    };
    float before = value(z0 - 1, row, column), here = value(z0, row, column);
    for (int z = z0; z < z1; ++z) {
        const float behind = value(z + 1, row, column);
        __syncthreads();   // all have read the plane before
        plane[ty + 1][tx + 1] = here;
        if (ty == 0) plane[0][tx + 1] = value(z, row - 1, column);
        if (ty == 7) plane[9][tx + 1] = value(z, row + 1, column);
        if (tx == 0) plane[ty + 1][0] = value(z, row, column - 1);
        if (tx == 31) plane[ty + 1][33] = value(z, row, column + 1);
        __syncthreads();
        if (inside) {
            const float sides = before + behind + plane[ty][tx + 1] + plane[ty + 2][tx + 1] + plane[ty + 1][tx] + plane[ty + 1][tx + 2];
            out[(size_t(z) * Y + row) * W + column] = centre * here + side * sides;
        }
        before = here, here = behind;
    }
}
