/* evoengine
name: layernorm_gram_diagonal
precision: fp32
summary: sums and squares of eight rows from the double tensor cores, the squares as a Gram matrix's diagonal
tunables:
  WARPS: [4, 8, 2]
let:
  VEC: 4 if C % 4 == 0 else 1
launches:
  - kernel: gram_norm<VEC>
    grid: ["ceil_div(N, 8)"]
    block: ["WARPS * WARP_SIZE"]
    shared: 2 * 8 * WARPS * 8
    args: [x, weight, bias, out, N, C, eps]
*/

namespace gram {

constexpr int Rows = 8;                 // of a block: both sides of the matrix that one mma adds to
constexpr int Threads = WARPS * 32;

template <int Vec> struct alignas(sizeof(float) * Vec) Chunk {
    float at[Vec];
};

/// A part of the statistics of one row.
struct Part {
    double sum, squares;
};

/// m8n8k4 in double precision. Lane l has a[l / 4][l % 4], b[l % 4][l / 4] and, of the accumulator,
/// the columns 2 * (l % 4) and the next of row l / 4. For a product of a matrix with its own
/// transpose, a and b of a lane are therefore the same number.
struct Accumulator {
    double c[2] = {0.0, 0.0};

    __device__ void add(double a, double b) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(c[0]), "+d"(c[1])
                     : "d"(a), "d"(b));
    }
};

/// The sums of this warp's share of the columns. The order of columns within the mma is free, so a
/// lane takes Vec neighbours at a time and feeds them to Vec products.
template <int Vec>
__device__ void measure(const float* x, int row, int C, int warp, int lane, bool present, Part* parts) {
    const auto* chunks = reinterpret_cast<const Chunk<Vec>*>(x + size_t(row) * C);
    const int count = C / Vec;

    Accumulator total, products;
    for (int base = warp * 4; base < count; base += WARPS * 4) {
        const int place = base + lane % 4;
        Chunk<Vec> chunk = {};
        if (present && place < count) chunk = chunks[place];
#pragma unroll
        for (int j = 0; j < Vec; ++j) {
            const double value = chunk.at[j];
            total.add(value, 1.0);
            products.add(value, value);
        }
    }

    // Every column of total is the sum. Of products, only the diagonal is of interest: for each
    // row one lane has it, in one of its two registers.
    const int r = lane / 4;
    if (lane % 4 == r / 2) parts[warp * Rows + r] = {total.c[0], products.c[r % 2]};
}

/// Mean and 1 / deviation of a row from the parts of all warps.
__device__ float2 combine(const Part* parts, int r, int C, float eps) {
    double sum = 0.0, squares = 0.0;
    for (int warp = 0; warp < WARPS; ++warp) {
        const Part part = parts[warp * Rows + r];
        sum += part.sum;
        squares += part.squares;
    }
    const double mean = sum / C;
    // a difference of numbers that may be nearly equal: harmless in double precision only
    const double variance = fmax(squares / C - mean * mean, 0.0);
    return make_float2(float(mean), 1.0f / sqrtf(float(variance) + eps));
}

template <int Vec>
__device__ void normalise(const float* x, const float* weight, const float* bias, float* out,
                          size_t row, int C, int lane, float mean, float scale) {
    using Piece = Chunk<Vec>;
    const auto* from = reinterpret_cast<const Piece*>(x + row * C);
    const auto* gains = reinterpret_cast<const Piece*>(weight);
    const auto* shifts = reinterpret_cast<const Piece*>(bias);
    auto* to = reinterpret_cast<Piece*>(out + row * C);
    for (int i = lane; i < C / Vec; i += 32) {
        const Piece values = from[i], gain = gains[i], shift = shifts[i];
        Piece result;
#pragma unroll
        for (int j = 0; j < Vec; ++j)
            result.at[j] = (values.at[j] - mean) * scale * gain.at[j] + shift.at[j];
        to[i] = result;
    }
}

}  // namespace gram

template <int Vec>
__global__ void __launch_bounds__(gram::Threads)
gram_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    using namespace gram;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float2 moments[Rows];
    Part* const parts = reinterpret_cast<Part*>(memory);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = blockIdx.x * Rows;
    const int rows = min(Rows, N - first);

    measure<Vec>(x, first + lane / 4, C, warp, lane, lane / 4 < rows, parts);
    __syncthreads();

    if (threadIdx.x < Rows) moments[threadIdx.x] = combine(parts, threadIdx.x, C, eps);
    __syncthreads();  // moments of all rows

    for (int r = warp; r < rows; r += WARPS) {
        const float2 found = moments[r];
        normalise<Vec>(x, weight, bias, out, size_t(first) + r, C, lane, found.x, found.y);
    }
}
