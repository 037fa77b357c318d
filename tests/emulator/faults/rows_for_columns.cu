// The matrix is not square, its strides are mixed up.
__global__ void __launch_bounds__(64) rows_for_columns(const float* in, float* out, int rows, int columns) {
    const int row = blockIdx.x, column = threadIdx.x;
    if (column >= columns) return;
#ifdef FIXED
    out[column * rows + row] = in[row * columns + column];
#else
    out[column * columns + row] = in[row * columns + column];    // FAULT
#endif
}
