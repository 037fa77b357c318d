/* evoengine
name: cross_entropy_ticket
precision: fp32
summary: a warp for each row; the block that arrives last writes the mean
launches:
  - kernel: cross_entropy
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [logits, target, loss, mean, N, V]
*/
__device__ unsigned arrived = 0;
__device__ float running = 0.0f;

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__global__ void cross_entropy(const float* logits, const int* target, float* loss, float* mean, int N, int V) {
    __shared__ float parts[4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = blockIdx.x * 4 + warp;
    float value = 0.0f;
    if (row < N) {
        const float* source = logits + size_t(row) * V;
        float top = minus_infinity(), sum = 0.0f;
        for (int i = lane; i < V; i += 32) {  // the lane's own maximum and sum
            const float next = fmaxf(top, source[i]);
            sum = sum * expf(top - next) + expf(source[i] - next);
            top = next;
        }
        for (int step = 16; step > 0; step /= 2) {
            const float other_top = __shfl_xor_sync(~0u, top, step);
            const float other_sum = __shfl_xor_sync(~0u, sum, step);
            const float next = fmaxf(top, other_top);
            sum = sum * expf(top - next) + other_sum * expf(other_top - next);
            top = next;
        }
        value = top + logf(sum) - source[target[row]];
        if (lane == 0) loss[row] = value;
    }
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&running, parts[0] + parts[1] + parts[2] + parts[3]);
        __threadfence();
        if (atomicAdd(&arrived, 1u) == gridDim.x - 1) {
            mean[0] = atomicExch(&running, 0.0f) / N;
            arrived = 0;  // for the next call
        }
    }
}
