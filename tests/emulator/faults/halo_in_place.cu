// Blocks change their part of a row while their neighbours read its edge.
__global__ void __launch_bounds__(64) halo_in_place(float* row, float* out, int n) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float next = i + 1 < n ? row[i + 1] : 0.0f;
#ifdef FIXED
    out[i] = row[i] + next;
#else
    __syncthreads();
    row[i] += next;    // FAULT
    out[i] = next;
#endif
}
