// A block leaves a factor with atomicExch and raises a volatile flag; the other uses the factor as soon as it sees the flag.
__global__ void __launch_bounds__(32) scale_exchanged_without_fence(const float* in, float* factor, volatile unsigned* flag, float* out) {
    const int t = threadIdx.x;
    if (blockIdx.x == 0) {
        if (t == 0) {
            atomicExch(factor, in[0] + 2.0f);
#ifdef FIXED
            __threadfence();
#endif
            *flag = 1;
        }
        return;
    }
    if (t == 0)
        while (*flag == 0) {}
    __syncthreads();
    out[t] = in[t] * *factor;    // FAULT
}
