__global__ void __launch_bounds__(32) one_row_too_many(const float* in, float* out, int rows) {
    float sum = 0.0f;
#ifdef FIXED
    for (int row = 0; row < rows; ++row)
#else
    for (int row = 0; row <= rows; ++row)
#endif
        sum += in[row * 32 + threadIdx.x];    // FAULT
    out[threadIdx.x] = sum;
}
