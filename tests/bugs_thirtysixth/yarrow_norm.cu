/* evoengine
name: yarrow_norm
precision: fp32
summary: blocks stride over the rows; later rows arrive in a shared ring by cp.async while one is normalised, every thread on bytes it fetched itself
tunables:
  THREADS: [128, 256, 512]
  STAGES: [3, 2, 4]
  ROWS: [8, 4, 16]
let:
  V: 4 if C % 4 == 0 else 1
  PITCH: round_up(C, 4)
require:
  - THREADS % WARP_SIZE == 0
  - STAGES >= 2
  - 4 * STAGES * PITCH + 1024 <= MAX_SHARED_BYTES
launches:
  - kernel: yarrow<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 4 * STAGES * PITCH
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

namespace {

constexpr int kWarps = THREADS / 32;

// W floats that move as one.
template <int W>
struct alignas(4 * W) Bundle {
    float f[W];
};

template <int W>
__device__ inline void fetch_async(Bundle<W>* dst, const Bundle<W>* src) {
    const unsigned where = static_cast<unsigned>(__cvta_generic_to_shared(dst));
    if constexpr (W == 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(where), "l"(src) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(where), "l"(src) : "memory");
}

__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ inline void wait_for_all_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ inline void store_streaming(Bundle<4>* dst, const Bundle<4>& v) {
    __stcs(reinterpret_cast<float4*>(dst), make_float4(v.f[0], v.f[1], v.f[2], v.f[3]));
}
__device__ inline void store_streaming(Bundle<1>* dst, const Bundle<1>& v) {
    __stcs(reinterpret_cast<float*>(dst), v.f[0]);
}

// Adds pairs over the block with one barrier a call: consecutive calls use alternate halves of
// `desk`, so the barrier of the call between protects a half until everybody has read it.
class PairSum {
public:
    __device__ explicit PairSum(float2 (*desk)[kWarps]) : desk_(desk), parity_(0) {}

    __device__ float2 operator()(float2 v) {
#pragma unroll
        for (int delta = 16; delta >= 1; delta >>= 1) {
            v.x += __shfl_down_sync(0xffffffffu, v.x, delta);
            v.y += __shfl_down_sync(0xffffffffu, v.y, delta);
        }
        if ((threadIdx.x & 31) == 0) desk_[parity_][threadIdx.x >> 5] = v;
        __syncthreads();
        float2 total = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            total.x += desk_[parity_][w].x;
            total.y += desk_[parity_][w].y;
        }
        parity_ ^= 1;
        return total;
    }

private:
    float2 (*desk_)[kWarps];
    int parity_;
};

}  // namespace

template <int W>
__global__ void __launch_bounds__(THREADS)
yarrow(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
       float* __restrict__ out, int N, int C, int pitch, float eps) {
    using Pack = Bundle<W>;
    extern __shared__ __align__(16) float ring[];
    __shared__ float2 desk[2][kWarps];
    PairSum block_total(desk);

    const int packs = C / W;
    const Pack* gain = reinterpret_cast<const Pack*>(weight);
    const Pack* shift = reinterpret_cast<const Pack*>(bias);

    // Starts copying a row into a slot; beyond the last row only an empty group is committed.
    auto request = [&](long long row, int slot) {
        if (row < N) {
            const Pack* src = reinterpret_cast<const Pack*>(x + row * C);
            Pack* dst = reinterpret_cast<Pack*>(ring + slot * pitch);
            for (int i = threadIdx.x; i < packs; i += THREADS) fetch_async(dst + i, src + i);
        }
        commit();
    };

#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) request(blockIdx.x + static_cast<long long>(s) * gridDim.x, s);

    int slot = 0;
    for (long long row = blockIdx.x; row < N; row += gridDim.x) {
        wait_for_all_but<STAGES - 2>();

        // The slot that the previous row has left is free: nobody but this thread reads its bytes.
        const int vacated = slot == 0 ? STAGES - 1 : slot - 1;
        request(row + (STAGES - 1ll) * gridDim.x, vacated);

        const Pack* held = reinterpret_cast<const Pack*>(ring + slot * pitch);

        float2 acc = make_float2(0.0f, 0.0f);   // two chains of additions
        for (int i = threadIdx.x; i < packs; i += 2 * THREADS) {
            const Pack a = held[i];
#pragma unroll
            for (int j = 0; j < W; ++j) acc.x += a.f[j];
            if (i + THREADS < packs) {
                const Pack b = held[i + THREADS];
#pragma unroll
                for (int j = 0; j < W; ++j) acc.y += b.f[j];
            }
        }
        acc = block_total(acc);
        const float mean = (acc.x + acc.y) / C;

        // Deviations should add up to zero; what they add up to is the rounding error of the mean.
        acc = make_float2(0.0f, 0.0f);
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack p = held[i];
#pragma unroll
            for (int j = 0; j < W; ++j) {
                const float d = p.f[j] - mean;
                acc.x += d;
                acc.y = fmaf(d, d, acc.y);
            }
        }
        acc = block_total(acc);
        const float residue = acc.x / C;
        const float variance = fmaxf(acc.y / C - residue * residue, 0.0f);
        const float inv = 1.0f / sqrtf(variance + eps);

        Pack* target = reinterpret_cast<Pack*>(out + row * C);
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack p = held[i], g = gain[i], b = shift[i];
            Pack y;
#pragma unroll
            for (int j = 0; j < W; ++j) y.f[j] = fmaf((p.f[j] - mean - residue) * inv, g.f[j], b.f[j]);
            store_streaming(target + i, y);
        }
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
}
