// Only even elements are set, all are read; indices come from memory, so that it stays an array.
__global__ void __launch_bounds__(32) local_array_uninitialised(const int* order, float* out) {
    float kept[16];
    for (int i = 0; i < 16; ++i) {
        const int at = order[i];
#ifndef FIXED
        if (at % 2) continue;
#endif
        kept[at] = at * threadIdx.x;
    }
    float sum = 0.0f;
    for (int i = 0; i < 16; ++i) sum = sum * 0.5f + kept[order[16 + i]];    // FAULT
    out[threadIdx.x] = sum;
}
