/* evoengine
name: conv_halo_tiles
precision: fp32
summary: a block has 128 outputs of a channel, whose inputs lie in shared memory behind a halo from the tile before or from the state
launches:
  - kernel: causal_conv<KW>
    grid: ["ceil_div(L, 128)", C, B]
    block: [64]
    args: [x, state, weight, bias, out, next_state, L]
*/
#define TILE 128

template <int KW>
__global__ void __launch_bounds__(64)
causal_conv(const float* __restrict__ x, const float* __restrict__ state, const float* __restrict__ weight,
            const float* __restrict__ bias, float* __restrict__ out, float* __restrict__ next_state, int L) {
    constexpr int HALO = KW - 1;
    __shared__ float tile[TILE + HALO];
    const int c = blockIdx.y;
    const size_t row = (size_t)blockIdx.z * gridDim.y + c;
    const int t0 = blockIdx.x * TILE;

    // tile[i] is the input at t0 + i - HALO; before the sequence there is the state
    for (int i = threadIdx.x; i < TILE + HALO; i += blockDim.x) {
        const int t = t0 + i - HALO;
        float value = 0.0f;
        if (t < 0) value = state[row * HALO + t + HALO];
        else if (t < L) value = x[row * L + t];
        tile[i] = value;
    }

    float w[KW];
    for (int j = 0; j < KW; ++j) w[j] = weight[c * KW + j];
    const float b = bias[c];
    __syncthreads();

    for (int i = threadIdx.x; i < TILE && t0 + i < L; i += blockDim.x) {
        float acc = b;
#pragma unroll
        for (int j = 0; j < KW; ++j) acc += w[j] * tile[i + j];
        out[row * L + t0 + i] = acc / (1.0f + expf(-acc));
    }

    // the block with the end of the sequence keeps the last inputs
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < HALO)
        next_state[row * HALO + threadIdx.x] = tile[L - t0 + threadIdx.x];
}
