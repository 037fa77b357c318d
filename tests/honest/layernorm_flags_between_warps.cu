/* evoengine
name: layernorm_flags_between_warps
precision: fp32
summary: a warp loads pieces of rows into shared memory for four others, which it and they hand over by flags, without a barrier
launches:
  - kernel: stream_rows
    grid: ["ceil_div(N, 4)"]
    block: [160]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int PIECE = 256;

// How many pieces a consumer has been given, and how many it has read.
struct Mailbox {
    unsigned given, taken;
};

__device__ __forceinline__ unsigned load_acquire(const unsigned* at) {
    unsigned value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                 : "=r"(value) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(at))) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(unsigned* at, unsigned value) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;"
                 ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(at))), "r"(value) : "memory");
}

// All lanes go on when the count is as high.
__device__ __forceinline__ void await(const unsigned* at, unsigned count) {
    if (threadIdx.x % 32 == 0)
        while (load_acquire(at) < count) {}
    __syncwarp();
}

__device__ __forceinline__ void announce(unsigned* at, unsigned count) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) store_release(at, count);
}

__device__ __forceinline__ float over_warp(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__global__ void __launch_bounds__(160)
stream_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
            float* __restrict__ out, int N, int C, float eps) {
    __shared__ float pieces[4][PIECE];
    __shared__ Mailbox boxes[4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * 4;
    if (threadIdx.x < 4) boxes[threadIdx.x] = Mailbox{0, 0};
    __syncthreads();   // the only one

    const int rounds = 3 * ((C + PIECE - 1) / PIECE);   // a row comes by three times: mean, variance, result
    if (warp == 4) {
        for (int round = 0; round < rounds; ++round) {
            const int begin = round % (rounds / 3) * PIECE;
            for (int box = 0; box < 4; ++box) {
                if (first + box >= N) continue;
                await(&boxes[box].taken, round);
                for (int c = lane; c < PIECE && begin + c < C; c += 32)
                    pieces[box][c] = x[size_t(first + box) * C + begin + c];
                announce(&boxes[box].given, round + 1);
            }
        }
        return;
    }

    const int row = first + warp;
    if (row >= N) return;
    float sum = 0.0f, mean = 0.0f, rest = 0.0f, squares = 0.0f, inverse = 0.0f;
    for (int round = 0; round < rounds; ++round) {
        const int pass = round / (rounds / 3), begin = round % (rounds / 3) * PIECE;
        if (begin == 0 && pass == 1) mean = over_warp(sum) / C;
        if (begin == 0 && pass == 2) {
            const float shift = over_warp(rest) / C;
            inverse = 1.0f / sqrtf(over_warp(squares) / C - shift * shift + eps);
            mean += shift;
        }
        await(&boxes[warp].given, round + 1);
        for (int c = lane; c < PIECE && begin + c < C; c += 32) {
            const float value = pieces[warp][c];
            if (pass == 0) {
                sum += value;
            } else if (pass == 1) {
                rest += value - mean;
                squares = fmaf(value - mean, value - mean, squares);
            } else {
                out[size_t(row) * C + begin + c] = (value - mean) * inverse * weight[begin + c] + bias[begin + c];
            }
        }
        announce(&boxes[warp].taken, round + 1);
    }
}
