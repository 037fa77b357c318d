/* evoengine
name: layernorm_last_warp_adds
precision: fp32
summary: the warps of a row leave their moments in shared memory, the one that counts itself last merges them, the others wait for its word
tunables:
  WARPS: [8, 4, 16]
launches:
  - kernel: norm_row
    grid: [N]
    block: [32 * WARPS]
    args: [x, weight, bias, out, C, eps]
*/
// Count, mean and sum of squared deviations, merged as in Chan, Golub and LeVeque.
struct Moments {
    float n, mean, m2;
};

__device__ Moments merged(Moments a, Moments b) {
    const float n = a.n + b.n;
    if (n == 0.0f) return a;
    const float delta = b.mean - a.mean, share = b.n / n;
    return {n, fmaf(delta, share, a.mean), a.m2 + b.m2 + delta * delta * a.n * share};
}

__device__ Moments over_warp(Moments m) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        m = merged(m, {__shfl_xor_sync(~0u, m.n, step), __shfl_xor_sync(~0u, m.mean, step), __shfl_xor_sync(~0u, m.m2, step)});
    return m;
}

__global__ void norm_row(const float* x, const float* weight, const float* bias, float* out, int C, float eps) {
    __shared__ Moments parts[WARPS];
    __shared__ float2 word;             // mean and inverse deviation
    __shared__ int arrived;
    __shared__ volatile int said;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* in = x + size_t(blockIdx.x) * C;
    if (threadIdx.x == 0) arrived = said = 0;
    __syncthreads();

    Moments own = {0.0f, 0.0f, 0.0f};
    for (int c = threadIdx.x; c < C; c += 32 * WARPS) {
        const float delta = in[c] - own.mean;
        own.n += 1.0f;
        own.mean += delta / own.n;
        own.m2 = fmaf(delta, in[c] - own.mean, own.m2);
    }
    own = over_warp(own);

    int before = 0;
    if (lane == 0) {
        parts[warp] = own;
        __threadfence_block();          // before it counts
        before = atomicAdd(&arrived, 1);
    }
    before = __shfl_sync(~0u, before, 0);
    if (before == WARPS - 1) {
        __threadfence_block();
        const Moments all = over_warp(lane < WARPS ? parts[lane] : Moments{0.0f, 0.0f, 0.0f});
        if (lane == 0) {
            word = make_float2(all.mean, 1.0f / sqrtf(all.m2 / C + eps));
            __threadfence_block();
            said = 1;
        }
    } else if (lane == 0) {
        while (!said) __nanosleep(20);
        __threadfence_block();
    }
    __syncwarp();
    const float2 known = word;
    for (int c = threadIdx.x; c < C; c += 32 * WARPS)
        out[size_t(blockIdx.x) * C + c] = (in[c] - known.x) * known.y * weight[c] + bias[c];
}
