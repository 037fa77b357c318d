/* evoengine
name: layernorm_lapis_conveyor
precision: fp32
summary: persistent blocks, rows arrive through a ring of cp.async in quads whatever their alignment, two passes in shared memory
tunables:
  WARPS: [4, 8, 16]
  SLOTS: [3, 2, 4]
  LEAST: [3, 1, 8]      # rows that are worth a block
let:
  PITCH: round_up(C + 3, 4)
  BLOCKS: min(ceil_div(N, LEAST), 4 * SM_COUNT)
require:
  - SLOTS * PITCH * 4 <= MAX_SHARED_BYTES - 1024
launches:
  - kernel: normalise_rows
    grid: [BLOCKS]
    block: [WARPS * 32]
    shared: SLOTS * PITCH * 4
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

#define NUM_THREADS (WARPS * 32)
#define FULL 0xffffffffu

// How a row of C floats falls on the lines of 16 bytes: `shift` floats belong to the row before,
// `lead` single floats come first, then `quads` aligned fours, then `rest` single floats.
struct Span {
    int shift, lead, quads, rest;
    __device__ __forceinline__ Span(long long row, int C) {
        shift = int(row * C & 3);
        lead = min((4 - shift) & 3, C);
        quads = (C - lead) >> 2;
        rest = C - lead - (quads << 2);
    }
};

template <int BYTES>
__device__ __forceinline__ void copy_async(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}

// In its slot the row starts `shift` floats in, so that its quads are aligned there too.
__device__ __forceinline__ void request_row(float* slot, const float* x, long long row, int C) {
    const Span span(row, C);
    const float* from = x + row * C;
    float* to = slot + span.shift;
    const int t = threadIdx.x;
    if (t < span.lead) copy_async<4>(to + t, from + t);
    for (int q = t; q < span.quads; q += NUM_THREADS) copy_async<16>(to + span.lead + 4 * q, from + span.lead + 4 * q);
    const int past = span.lead + 4 * span.quads;
    if (t < span.rest) copy_async<4>(to + past + t, from + past + t);
}

__device__ __forceinline__ float2 across_warp(float2 v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        v.x += __shfl_xor_sync(FULL, v.x, o);
        v.y += __shfl_xor_sync(FULL, v.y, o);
    }
    return v;
}

// Two sums over the block with one barrier: calls alternate between two boards.
__device__ __forceinline__ float2 across_block(float2 v, float2 (&board)[2][32], int& side) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    v = across_warp(v);
    if (lane == 0) board[side][warp] = v;
    __syncthreads();
    v = lane < WARPS ? board[side][lane] : make_float2(0.f, 0.f);
    side ^= 1;
    return across_warp(v);
}

__global__ void __launch_bounds__(NUM_THREADS)
normalise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
               float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ __align__(16) float belt[];
    __shared__ float2 board[2][32];
    const int t = threadIdx.x;
    int side = 0;

    long long ahead = blockIdx.x;
#pragma unroll
    for (int s = 0; s < SLOTS - 1; ++s, ahead += gridDim.x) {
        if (ahead < N) request_row(belt + s * pitch, x, ahead, C);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    int slot = 0;
    for (long long row = blockIdx.x; row < N; row += gridDim.x, ahead += gridDim.x) {
        asm volatile("cp.async.wait_group %0;" ::"n"(SLOTS - 2) : "memory");
        __syncthreads();  // all parts of this row are there, and nobody reads the row before any more
        const int free_slot = slot == 0 ? SLOTS - 1 : slot - 1;
        if (ahead < N) request_row(belt + free_slot * pitch, x, ahead, C);
        asm volatile("cp.async.commit_group;" ::: "memory");

        const Span span(row, C);
        const float* mine = belt + slot * pitch + span.shift;

        float total = 0.f;
        for (int c = t; c < C; c += NUM_THREADS) total += mine[c];
        const float mean = across_block(make_float2(total, 0.f), board, side).x / C;

        // The rounded mean leaves deviations that do not cancel; what they sum to corrects it.
        float2 moments = make_float2(0.f, 0.f);
        for (int c = t; c < C; c += NUM_THREADS) {
            const float d = mine[c] - mean;
            moments.x += d;
            moments.y = fmaf(d, d, moments.y);
        }
        moments = across_block(moments, board, side);
        const float drift = moments.x / C;
        const float variance = fmaxf(moments.y / C - drift * drift, 0.f);
        const float gain = 1.0f / sqrtf(variance + eps);

        float* to = out + row * C;
        auto result = [&](int c, float scale, float offset) {
            return fmaf((mine[c] - mean - drift) * gain, scale, offset);
        };
        if (t < span.lead) to[t] = result(t, weight[t], bias[t]);
        for (int q = t; q < span.quads; q += NUM_THREADS) {
            const int c = span.lead + 4 * q;
            float y[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) y[j] = result(c + j, weight[c + j], bias[c + j]);
            *reinterpret_cast<float4*>(to + c) = make_float4(y[0], y[1], y[2], y[3]);
        }
        const int done = span.lead + 4 * span.quads;
        if (t < span.rest) to[done + t] = result(done + t, weight[done + t], bias[done + t]);

        slot = slot + 1 == SLOTS ? 0 : slot + 1;
    }
}
