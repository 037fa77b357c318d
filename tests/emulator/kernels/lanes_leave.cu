// Lanes leave a loop after different rounds and all merge their means afterwards. The flag is 0, which a compiler cannot know: it
// puts what comes after the loop before the loop's body. Nothing comes after the last loop.
extern "C" { __device__ int flag; }

__device__ bool is_set() {
    int value;
    asm("ld.global.s32 %0, [flag];" : "=r"(value));
    return value == 1;
}

struct Mean { float count, mean; };

__device__ Mean merged(Mean a, Mean b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    return {count, a.mean + (b.mean - a.mean) * (b.count / count)};
}

__global__ void lanes_leave(const float* x, float* out, int n) {
    __shared__ float mean;
    Mean own = {0.0f, 0.0f};
    _Pragma("unroll 1") for (int i = threadIdx.x; is_set() ? static_cast<bool>(i) : i < n; i += 32)
        own = merged(own, {1.0f, x[i]});
    _Pragma("unroll 1") for (int step = 16; step > 0; step /= 2) {
        Mean other;
        other.count = __shfl_down_sync(~0u, own.count, step);
        other.mean = __shfl_down_sync(~0u, own.mean, step);
        own = merged(own, other);
    }
    if (threadIdx.x == 0) mean = own.mean;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 32) out[i] = x[i] - mean;
}
