/* evoengine
name: loss_online_blocks
precision: fp32
summary: a block has a row; threads keep maximum, sum of exponentials and plain sum in one pass, the second pass writes the gradient
let:
  VEC: 4 if V % 4 == 0 else 1
launches:
  - kernel: smoothed_cross_entropy<VEC>
    grid: [N]
    block: [256]
    args: [logits, target, grad, loss, dlogits, V, smoothing]
*/
constexpr int THREADS = 256;

template <int VEC> struct alignas(4 * VEC) Vector { float at[VEC]; };

struct State {
    float high;    // largest logit so far
    float exps;    // sum of exp(logit - high)
    float plain;   // sum of logits
};

__device__ __forceinline__ State combine(State a, State b) {
    const float high = fmaxf(a.high, b.high);
    if (high == -INFINITY) return a;
    return {high, a.exps * expf(a.high - high) + b.exps * expf(b.high - high), a.plain + b.plain};
}

__device__ __forceinline__ State shuffled(State s, int offset) {
    return {__shfl_down_sync(0xffffffffu, s.high, offset), __shfl_down_sync(0xffffffffu, s.exps, offset),
            __shfl_down_sync(0xffffffffu, s.plain, offset)};
}

template <int VEC>
__global__ void __launch_bounds__(THREADS)
smoothed_cross_entropy(const float* __restrict__ logits, const int* __restrict__ target, const float* __restrict__ grad,
                       float* __restrict__ loss, float* __restrict__ dlogits, int V, float smoothing) {
    __shared__ State warp_states[THREADS / 32];
    const int row = blockIdx.x, tid = threadIdx.x;
    const int label = target[row];
    const float* x = logits + size_t(row) * V;
    float* dx = dlogits + size_t(row) * V;

    if (label < 0) {   // an ignored row
        for (int i = tid; i < V; i += THREADS) dx[i] = 0.0f;
        if (tid == 0) loss[row] = 0.0f;
        return;
    }

    State state = {-INFINITY, 0.0f, 0.0f};
    for (int i = tid; i < V / VEC; i += THREADS) {
        const Vector<VEC> some = reinterpret_cast<const Vector<VEC>*>(x)[i];
        for (int e = 0; e < VEC; ++e) state = combine(state, {some.at[e], 1.0f, some.at[e]});
    }
    for (int offset = 16; offset > 0; offset /= 2) state = combine(state, shuffled(state, offset));
    if (tid % 32 == 0) warp_states[tid / 32] = state;
    __syncthreads();
    state = warp_states[0];
    for (int w = 1; w < THREADS / 32; ++w) state = combine(state, warp_states[w]);

    const float lse = state.high + logf(state.exps);
    if (tid == 0) loss[row] = lse - (1.0f - smoothing) * x[label] - smoothing * (state.plain / V);

    const float g = grad[row], everywhere = smoothing / V;
    for (int i = tid; i < V / VEC; i += THREADS) {
        const Vector<VEC> some = reinterpret_cast<const Vector<VEC>*>(x)[i];
        Vector<VEC> result;
        for (int e = 0; e < VEC; ++e) {
            float wanted = everywhere;
            if (i * VEC + e == label) wanted += 1.0f - smoothing;
            result.at[e] = (expf(some.at[e] - lse) - wanted) * g;
        }
        reinterpret_cast<Vector<VEC>*>(dx)[i] = result;
    }
}
