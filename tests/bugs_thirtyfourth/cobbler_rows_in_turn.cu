/* evoengine
name: cobbler_rows_in_turn
precision: fp32
summary: a block normalises RUN rows in turn; the next row arrives by cp.async while this one is measured
tunables:
  THREADS: [256, 128, 512]
  RUN: [4, 2, 8]
let:
  PITCH: round_up(C, 4)
require:
  - THREADS % WARP_SIZE == 0
  - 8 * PITCH <= MAX_SHARED_BYTES - 1024
launches:
  - kernel: cobbler<(C % 4 == 0)>
    grid: ["ceil_div(N, RUN)"]
    block: [THREADS]
    shared: 8 * PITCH
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

constexpr int WARPS = THREADS / 32;

// cp.async of BYTES bytes (4 or 16)
template <int BYTES>
__device__ inline void copy_async(float* shared_to, const float* from) {
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared_to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
}

// The sum over the block, for every thread. `slots` must not be in use by another sum.
__device__ inline float block_sum(float v, float* slots) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < WARPS; ++w) total += slots[w];
    return total;
}

template <bool ALIGNED>
__device__ inline void request_row(float* to, const float* __restrict__ from, int C, int pitch) {
    if (ALIGNED) {
        for (int i = threadIdx.x; i < C / 4; i += THREADS) copy_async<16>(to + 4 * i, from + 4 * i);
    } else {
        for (int i = threadIdx.x; i < pitch; i += THREADS) {
            if (i < C)
                copy_async<4>(to + i, from + i);
            else
                to[i] = 0.0f;  // the sum may then run over whole float4s
        }
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
cobbler(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
        float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ float4 rows4[];
    __shared__ float mean_slots[WARPS], square_slots[WARPS];
    float* buffers = reinterpret_cast<float*>(rows4);

    const int begin = blockIdx.x * RUN;
    const int end = min(N, begin + RUN);

    request_row<ALIGNED>(buffers, x + size_t(begin) * C, C, pitch);
    asm volatile("cp.async.commit_group;" ::: "memory");

    for (int row = begin; row < end; ++row) {
        const int turn = (row - begin) & 1;
        const float4* here = reinterpret_cast<const float4*>(buffers + turn * pitch);
        if (row + 1 < end) request_row<ALIGNED>(buffers + (turn ^ 1) * pitch, x + size_t(row + 1) * C, C, pitch);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");  // this row's group; the next one's may be on its way
        __syncthreads();

        // mean
        float sum = 0.0f;
        for (int i = threadIdx.x; i < pitch / 4; i += THREADS) {
            const float4 v = here[i];
            sum += (v.x + v.y) + (v.z + v.w);
        }
        const float mean = block_sum(sum, mean_slots) / C;

        // squared deviations from it
        float squares = 0.0f;
        for (int i = threadIdx.x; i < pitch / 4; i += THREADS) {
            const float4 v = here[i];
            const float part[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float d = part[j] - mean;
                if (ALIGNED || 4 * i + j < C) squares += d * d;
            }
        }
        const float variance = block_sum(squares, square_slots) / C;
        const float inverse = 1.0f / sqrtf(variance + eps);

        float* to = out + size_t(row) * C;
        if (ALIGNED) {
            for (int i = threadIdx.x; i < C / 4; i += THREADS) {
                const float4 v = here[i];
                const float4 g = reinterpret_cast<const float4*>(weight)[i];
                const float4 s = reinterpret_cast<const float4*>(bias)[i];
                float4 y;
                y.x = (v.x - mean) * inverse * g.x + s.x;
                y.y = (v.y - mean) * inverse * g.y + s.y;
                y.z = (v.z - mean) * inverse * g.z + s.z;
                y.w = (v.w - mean) * inverse * g.w + s.w;
                reinterpret_cast<float4*>(to)[i] = y;
            }
        } else {
            const float* v = buffers + turn * pitch;
            for (int i = threadIdx.x; i < C; i += THREADS) to[i] = (v[i] - mean) * inverse * weight[i] + bias[i];
        }
        __syncthreads();  // the row after the next goes into this buffer
    }
}
