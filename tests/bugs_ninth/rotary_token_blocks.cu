/* evoengine
name: rotary_token_blocks
precision: fp32
summary: a block has a token; its row of the tables waits in shared memory, a thread has a pair or two columns that are copied
launches:
  - kernel: rotate
    grid: [S, B]
    block: [96]
    shared: R * 4
    args: [qk, positions, cosines, sines, q, k, S, HQ, HK, D, R, scale]
*/
__global__ void __launch_bounds__(96)
rotate(const float* __restrict__ qk, const int* __restrict__ positions, const float* __restrict__ cosines,
       const float* __restrict__ sines, float* __restrict__ q, float* __restrict__ k, int S, int HQ, int HK, int D, int R,
       float scale) {
    extern __shared__ float turns[];
    float *cosine = turns, *sine = turns + R / 2;
    const int s = blockIdx.x, batch = blockIdx.y, token = batch * S + s;
    const size_t position = positions[token];
    for (int i = threadIdx.x; i < R / 2; i += blockDim.x) {
        cosine[i] = cosines[position * (R / 2) + i];
        sine[i] = sines[position * (R / 2) + i];
    }
    __syncthreads();

    const int heads = HQ + HK, half_r = R / 2;
    for (int i = threadIdx.x; i < heads * (D / 2); i += blockDim.x) {
        const int head = i / (D / 2), p = i % (D / 2);
        const float* from = qk + (size_t(token) * heads + head) * D;
        const bool is_query = head < HQ;
        float* to = is_query ? q + ((size_t(batch) * HQ + head) * S + s) * D
                             : k + ((size_t(batch) * HK + head - HQ) * S + s) * D;
        const float factor = is_query ? scale : 1.0f;
        if (p < half_r) {
            const float low = from[p], high = from[p + half_r];
            to[p] = (low * cosine[p] - high * sine[p]) * factor;
            to[p + half_r] = (high * cosine[p] + low * sine[p]) * factor;
        } else {
            const int column = R + (p - half_r) * 2;
            to[column] = from[column] * factor;
            to[column + 1] = from[column + 1] * factor;
        }
    }
}
