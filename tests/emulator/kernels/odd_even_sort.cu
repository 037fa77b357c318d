// Neighbours trade places until a whole round changes nothing.
extern "C" __global__ void odd_even_sort(unsigned short* data, int n, int* rounds) {
    extern __shared__ unsigned short s[];
    unsigned short* mine = data + blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = mine[i];
    __syncthreads();

    int count = 0;
    int changed;
    do {
        changed = 0;
        for (int phase = 0; phase < 2; ++phase) {
            for (int i = 2 * threadIdx.x + phase; i + 1 < n; i += 2 * blockDim.x) {
                if (s[i] > s[i + 1]) {
                    unsigned short t = s[i];
                    s[i] = s[i + 1];
                    s[i + 1] = t;
                    changed = 1;
                }
            }
            __syncthreads();
        }
        ++count;
    } while (__syncthreads_or(changed));

    for (int i = threadIdx.x; i < n; i += blockDim.x) mine[i] = s[i];
    if (threadIdx.x == 0) rounds[blockIdx.x] = count;
}
