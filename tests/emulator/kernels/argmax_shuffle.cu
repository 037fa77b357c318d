// Largest value and its first index in each row, pairs through shuffles.
__device__ void warp_argmax(float& best, int& index) {
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_down_sync(0xffffffff, best, offset);
        int other_index = __shfl_down_sync(0xffffffff, index, offset);
        if (other > best || (other == best && other_index < index)) {
            best = other;
            index = other_index;
        }
    }
}

extern "C" __global__ void argmax_shuffle(const float* x, float* values, long long* indices, int cols) {
    __shared__ float s_best[32];
    __shared__ int s_index[32];
    float best = -INFINITY;
    int index = 0x7fffffff;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = x[blockIdx.x * cols + i];
        if (v > best) {
            best = v;
            index = i;
        }
    }
    warp_argmax(best, index);
    int warps = (blockDim.x + 31) / 32;
    if (threadIdx.x % 32 == 0) {
        s_best[threadIdx.x / 32] = best;
        s_index[threadIdx.x / 32] = index;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        best = threadIdx.x < warps ? s_best[threadIdx.x] : -INFINITY;
        index = threadIdx.x < warps ? s_index[threadIdx.x] : 0x7fffffff;
        warp_argmax(best, index);
        if (threadIdx.x == 0) {
            values[blockIdx.x] = best;
            indices[blockIdx.x] = index;
        }
    }
}
