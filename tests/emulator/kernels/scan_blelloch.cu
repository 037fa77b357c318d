// Exclusive scan of N elements by N/2 threads: sweep up, clear the root, sweep down (Blelloch).
#define CONFLICT_FREE(i) ((i) + ((i) >> 5))

template <int N>
__global__ void scan_blelloch(const float* __restrict__ in, float* __restrict__ out, float* __restrict__ totals) {
    __shared__ float temp[N + N / 32];
    const int tid = threadIdx.x;
    const float* source = in + blockIdx.x * N;
    int offset = 1;

    temp[CONFLICT_FREE(tid)] = source[tid];
    temp[CONFLICT_FREE(tid + N / 2)] = source[tid + N / 2];

    for (int d = N >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (tid < d) {
            int ai = CONFLICT_FREE(offset * (2 * tid + 1) - 1);
            int bi = CONFLICT_FREE(offset * (2 * tid + 2) - 1);
            temp[bi] += temp[ai];
        }
        offset *= 2;
    }
    if (tid == 0) {
        totals[blockIdx.x] = temp[CONFLICT_FREE(N - 1)];
        temp[CONFLICT_FREE(N - 1)] = 0.0f;
    }
    for (int d = 1; d < N; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (tid < d) {
            int ai = CONFLICT_FREE(offset * (2 * tid + 1) - 1);
            int bi = CONFLICT_FREE(offset * (2 * tid + 2) - 1);
            float t = temp[ai];
            temp[ai] = temp[bi];
            temp[bi] += t;
        }
    }
    __syncthreads();
    out[blockIdx.x * N + tid] = temp[CONFLICT_FREE(tid)];
    out[blockIdx.x * N + tid + N / 2] = temp[CONFLICT_FREE(tid + N / 2)];
}
