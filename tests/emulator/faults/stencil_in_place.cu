// A block smooths its row in global memory and reads neighbours that may be new already.
__global__ void __launch_bounds__(128) stencil_in_place(float* row) {
    const int t = threadIdx.x;
    const float sum = row[t] + row[(t + 1) % 128];
#ifdef FIXED
    __syncthreads();
#endif
    row[t] = 0.5f * sum;    // FAULT
}
