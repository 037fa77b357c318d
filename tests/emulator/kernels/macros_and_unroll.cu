// Sizes by macros from the compiler's command line, a fully unrolled loop over a register tile, and #if.
#ifndef TILE
#define TILE 4
#endif
#define SQUARE(x) ((x) * (x))

extern "C" __global__ void macros_and_unroll(const int* __restrict__ x, int* __restrict__ y, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;
    int r[TILE];
#pragma unroll
    for (int k = 0; k < TILE; ++k) r[k] = first + k < n ? x[first + k] : 0;
#if TILE > 2
#pragma unroll
    for (int k = 1; k < TILE; ++k) r[k] += r[k - 1];
#endif
#pragma unroll
    for (int k = 0; k < TILE; ++k)
        if (first + k < n) y[first + k] = SQUARE(r[k]) OPERATION first;
}
