/* evoengine
name: alignment_state_threads
precision: fp32
summary: a block has a sequence and a thread a state, a label or a blank; the states' logarithmic sums lie in two buffers of shared memory by turns
launches:
  - kernel: align
    grid: [B]
    block: [32]
    args: [scores, labels, frames, counts, loss, T, C, L]
*/
constexpr int STATES = 32;

__device__ __forceinline__ float sum_of_three(float a, float b, float c) {
    const float top = fmaxf(a, fmaxf(b, c));
    if (top == -INFINITY) return top;
    return top + logf(expf(a - top) + expf(b - top) + expf(c - top));
}

__global__ void __launch_bounds__(STATES)
align(const float* __restrict__ scores, const int* __restrict__ labels, const int* __restrict__ frames,
      const int* __restrict__ counts, float* __restrict__ loss, int T, int C, int L) {
    __shared__ float sums[2][STATES];
    const int sequence = blockIdx.x, state = threadIdx.x;
    const int length = frames[sequence], states = 2 * counts[sequence] + 1;
    const float* frame = scores + size_t(sequence) * T * C;
    const int* names = labels + sequence * L;
    const bool used = state < states, label = used && state % 2 == 1;
    const int name = label ? names[state / 2] : 0;   // 0 is the blank
    const bool skips = label && state > 1 && name != names[state / 2 - 1];

    sums[0][state] = used && state < 2 ? frame[name] : -INFINITY;
    __syncthreads();
    for (int t = 1; t < length; ++t) {
        const float* before = sums[(t - 1) % 2];
        const float stays = before[state];
        const float comes = state > 0 ? before[state - 1] : -INFINITY;
        const float jumps = skips ? before[state - 2] : -INFINITY;
        sums[t % 2][state] = used ? sum_of_three(stays, comes, jumps) + frame[t * C + name] : -INFINITY;
        __syncthreads();
    }
    if (state > 0) return;
    const float* last = sums[(length - 1) % 2];
    loss[sequence] = -sum_of_three(last[states - 1], last[states - 2], -INFINITY);
}
