// A list of 8 that is given 9.
__global__ void __launch_bounds__(32) local_array_overrun(const int* order, float* out, int count) {
    float kept[8];
    for (int i = 0; i < 8; ++i) kept[i] = 0.0f;
#ifdef FIXED
    for (int i = 0; i < count && i < 8; ++i) kept[order[i]] += i;
#else
    for (int i = 0; i < count; ++i) kept[order[i]] += i;    // FAULT
#endif
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum = sum * 0.5f + kept[order[i] % 8];
    out[threadIdx.x] = sum;
}
