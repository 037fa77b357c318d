/* evoengine
name: layernorm_fixed_sums
precision: fp32
summary: sums are whole numbers of 64 bits in units of the row's own exponent, so that they are exact, and atomics may add them in any order
tunables:
  THREADS: [128, 256, 64]
  ROWS: [2, 4, 1]              # of a block, one after the other
  VECTOR: [4, 2, 1]
let:
  V: VECTOR if C % VECTOR == 0 else 1
require:
  - C <= 65536                 # 2^45 each, of which 2^16 fit
  - 4 * C <= MAX_SHARED_BYTES - 1024
launches:
  - kernel: layernorm_fixed_sums<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 4 * C
    args: [x, weight, bias, out, N, C, eps]
*/

// Sums of floats depend on their order; sums of integers do not. With |x| < 2^E for all x of a row,
//
//      q(x) = round(x * 2^(BITS - E))              a whole number below 2^BITS
//
// loses only what is 2^-45 of the row's largest value, and adding q is exact. The result is the same
// to the last bit whatever THREADS is and however the atomics come. Squares of deviations, which are
// below (2^(E+1))^2, are treated in the same way.

namespace fixed {

constexpr int BITS = 45;
constexpr unsigned ALL = 0xffffffffu;

// 2^n as a float, for -126 <= n <= 127.
__device__ __forceinline__ float power_of_two(int n) { return __int_as_float((n + 127) << 23); }

struct Row {
    unsigned top;                           // largest |x|, as bits: they are in the order of the numbers
    unsigned long long sum, squares;        // two's complement
};

__device__ __forceinline__ void raise_top(Row& row, unsigned bits) {
    bits = __reduce_max_sync(ALL, bits);
    if (threadIdx.x % 32 == 0) atomicMax(&row.top, bits);
}

__device__ __forceinline__ void add_up(unsigned long long& total, long long part) {
#pragma unroll
    for (int hop = 16; hop > 0; hop >>= 1) part += __shfl_xor_sync(ALL, part, hop);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, static_cast<unsigned long long>(part));
}

// E of the row. Rows of zeros and of the very smallest numbers are measured in units for 2^-30.
__device__ __forceinline__ int exponent_above(unsigned top) {
    const int exponent = static_cast<int>(top >> 23) - 126;
    return exponent < -30 ? -30 : exponent;
}

// The mean as a sum of two floats: one alone is off by half a unit of its last place in every deviation.
struct Mean {
    float high, low;
    __device__ __forceinline__ explicit Mean(double value)
        : high(static_cast<float>(value)), low(static_cast<float>(value - static_cast<float>(value))) {}
    __device__ __forceinline__ float deviation(float x) const { return (x - high) - low; }
};

template <int V> struct alignas(4 * V) Pack { float at[V]; };

}  // namespace fixed

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm_fixed_sums(const float* __restrict__ x, const float* __restrict__ weight,
                     const float* __restrict__ bias, float* __restrict__ out, int N, int C, float eps) {
    using namespace fixed;
    using P = Pack<V>;
    extern __shared__ __align__(16) unsigned char bytes[];
    P* const kept = reinterpret_cast<P*>(bytes);        // every thread reads only what it has written
    __shared__ Row totals[ROWS];

    if (threadIdx.x < ROWS) totals[threadIdx.x] = Row{0u, 0ull, 0ull};
    __syncthreads();

    const int packs = C / V;
    const P* const gains = reinterpret_cast<const P*>(weight);
    const P* const offsets = reinterpret_cast<const P*>(bias);

#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
        const long long index = static_cast<long long>(blockIdx.x) * ROWS + r;
        if (index >= N) break;
        Row& row = totals[r];
        const P* const source = reinterpret_cast<const P*>(x + index * C);
        P* const target = reinterpret_cast<P*>(out + index * C);

        unsigned top = 0;
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const P p = source[i];
            kept[i] = p;
#pragma unroll
            for (int j = 0; j < V; ++j) top = max(top, __float_as_uint(p.at[j]) & 0x7fffffffu);
        }
        raise_top(row, top);
        __syncthreads();

        const int E = exponent_above(row.top);
        const float unit = power_of_two(BITS - E);
        long long part = 0;
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const P p = kept[i];
#pragma unroll
            for (int j = 0; j < V; ++j) part += __float2ll_rn(p.at[j] * unit);
        }
        add_up(row.sum, part);
        __syncthreads();

        const double total = static_cast<double>(static_cast<long long>(row.sum));
        const Mean mean(total * power_of_two(E - BITS) / C);

        const float square_unit = power_of_two(BITS - 2 * (E + 1));
        long long squares = 0;
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const P p = kept[i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = mean.deviation(p.at[j]);
                squares += __float2ll_rn(d * d * square_unit);
            }
        }
        add_up(row.squares, squares);
        __syncthreads();

        const float variance = __ull2float_rn(row.squares) * power_of_two(2 * (E + 1) - BITS) / C;
        const float scale = 1.0f / sqrtf(variance + eps);
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const P p = kept[i], w = gains[i], b = offsets[i];
            P y;
#pragma unroll
            for (int j = 0; j < V; ++j) y.at[j] = fmaf(mean.deviation(p.at[j]) * scale, w.at[j], b.at[j]);
            target[i] = y;
        }
    }
}
