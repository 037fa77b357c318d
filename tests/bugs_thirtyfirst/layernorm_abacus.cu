/* evoengine
name: layernorm_abacus
precision: fp32
summary: sums and squares of a row in whole numbers, scaled by its largest exponent and added by redux and shared atomics, so that no order of the threads changes a bit
tunables:
  THREADS: [128, 256]
  TURNS: [4, 2, 1]         # rows that a block does one after the other
let:
  VEC: 4 if C % 4 == 0 else 1
require:
  - C <= 64 * THREADS      # so that a warp's sum of squares fits
launches:
  - kernel: abacus<VEC>
    grid: ["ceil_div(N, TURNS)"]
    block: [THREADS]
    shared: 4 * round_up(C, 4)
    args: [x, weight, bias, out, N, C, eps]
*/
#include <cstdint>

// Reproducible moments in fixed point. With |x| < 2^(E - 126) for all x of a row, where E is the biased
// exponent of the largest, x * 2^(156 - E) fits 30 bits and a sign. Deviations from the mean can be twice
// as large; they get seven bits less, and 23 bits squared leave room for 2^16 of them in 62 bits.

using i64 = long long;

constexpr int kBits = 30;          // of an element, when the mean is taken
constexpr int kFewer = 7;          // bits less for a deviation
constexpr int kLow = 27;           // 32 lanes of so many bits fit a word

template <int VEC>
struct __align__(4 * VEC) Beads {
    float at[VEC];
};

// What the warps of a block have in common for one row.
struct Frame {
    unsigned peak;                 // largest |x|, as the bits of a float
    unsigned long long sum;        // two's complement
    unsigned long long squares;

    __device__ void clear() {
        peak = 0u;
        sum = squares = 0ull;
    }
};

// 2^k as a float
__device__ __forceinline__ float power(int k) { return __int_as_float((k + 127) << 23); }

// redux adds words; a lane's number is cut in two, whose upper part keeps the sign.
__device__ __forceinline__ i64 warp_sum(i64 v) {
    const unsigned low = static_cast<unsigned>(v & ((1 << kLow) - 1));
    const int high = static_cast<int>(v >> kLow);
    const unsigned lows = __reduce_add_sync(0xffffffffu, low);
    const int highs = __reduce_add_sync(0xffffffffu, high);
    return (static_cast<i64>(highs) << kLow) + lows;
}

__device__ __forceinline__ void tally(unsigned long long* total, i64 v) {
    const i64 all = warp_sum(v);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, static_cast<unsigned long long>(all));
}

// Calls f(i) for the vectors of a row that are this thread's: the same ones in every pass, so that what a
// thread puts into the shared row is read by nobody else.
template <int VEC, typename F>
__device__ __forceinline__ void own(int C, F f) {
    for (int i = threadIdx.x; i < C / VEC; i += THREADS) f(i);
}

template <int VEC>
__global__ void __launch_bounds__(THREADS)
abacus(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
       float* __restrict__ out, int N, int C, float eps) {
    using B = Beads<VEC>;
    extern __shared__ float4 storage[];
    __shared__ Frame frames[2];                    // rows take turns with them
    B* const kept = reinterpret_cast<B*>(storage);
    const B* const w = reinterpret_cast<const B*>(weight);
    const B* const b = reinterpret_cast<const B*>(bias);

    if (threadIdx.x == 0) frames[0].clear();
    __syncthreads();

    for (int turn = 0; turn < TURNS; ++turn) {
        const int row = blockIdx.x * TURNS + turn;
        if (row >= N) return;
        Frame& frame = frames[turn & 1];

        // 1. The row comes in. Without its sign, a float is ordered as its bits are.
        const B* const source = reinterpret_cast<const B*>(x + static_cast<size_t>(row) * C);
        unsigned peak = 0u;
        own<VEC>(C, [&](int i) {
            const B v = source[i];
            kept[i] = v;
#pragma unroll
            for (int j = 0; j < VEC; ++j) peak = max(peak, __float_as_uint(v.at[j]) & 0x7fffffffu);
        });
        peak = __reduce_max_sync(0xffffffffu, peak);
        if ((threadIdx.x & 31) == 0) atomicMax(&frame.peak, peak);
        __syncthreads();

        // The other frame was the last row's; nobody can be reading it any more.
        if (threadIdx.x == 0) frames[(turn + 1) & 1].clear();

        // 2. The mean
        const int exponent = static_cast<int>(frame.peak >> 23);
        const int k = min(kBits + 126 - exponent, 120);
        const float up = power(k);
        i64 sum = 0;
        own<VEC>(C, [&](int i) {
#pragma unroll
            for (int j = 0; j < VEC; ++j) sum += __float2int_rn(kept[i].at[j] * up);
        });
        tally(&frame.sum, sum);
        __syncthreads();
        const float mean = __ll2float_rn(static_cast<i64>(frame.sum)) * power(-k) / C;

        // 3. The variance; the deviations stay in place of the elements
        const float fine = power(k - kFewer - 1);
        i64 squares = 0;
        own<VEC>(C, [&](int i) {
            B v = kept[i];
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                v.at[j] -= mean;
                const int d = __float2int_rn(v.at[j] * fine);
                squares += static_cast<i64>(d) * d;
            }
            kept[i] = v;
        });
        tally(&frame.squares, squares);
        __syncthreads();
        const float back = power(-(k - kFewer - 1));
        const float variance = __ull2float_rn(frame.squares) * back * back / C;
        const float scale = 1.0f / sqrtf(variance + eps);

        // 4. The result
        B* const target = reinterpret_cast<B*>(out + static_cast<size_t>(row) * C);
        own<VEC>(C, [&](int i) {
            B v = kept[i];
            const B gain = w[i], shift = b[i];
#pragma unroll
            for (int j = 0; j < VEC; ++j) v.at[j] = v.at[j] * scale * gain.at[j] + shift.at[j];
            target[i] = v;
        });
    }
}
