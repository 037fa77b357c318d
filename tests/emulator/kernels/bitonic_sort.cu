// Each block sorts 2 * THREADS keys with their values in shared memory.
template <int THREADS, bool DESCENDING>
__global__ void bitonic_sort(float* keys, int* payload) {
    constexpr int N = 2 * THREADS;
    __shared__ float k[N];
    __shared__ int v[N];
    const int base = blockIdx.x * N;
    for (int i = threadIdx.x; i < N; i += THREADS) {
        k[i] = keys[base + i];
        v[i] = payload[base + i];
    }
    for (int size = 2; size <= N; size <<= 1) {
        bool up = ((threadIdx.x & (size / 2)) == 0) != DESCENDING;
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            int pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            if ((k[pos] > k[pos + stride]) == up) {
                float tk = k[pos];
                k[pos] = k[pos + stride];
                k[pos + stride] = tk;
                int tv = v[pos];
                v[pos] = v[pos + stride];
                v[pos + stride] = tv;
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += THREADS) {
        keys[base + i] = k[i];
        payload[base + i] = v[i];
    }
}
