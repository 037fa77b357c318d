/* evoengine
name: layernorm_double_moments
precision: fp32
summary: a block has four rows, two warps each; sum and squares of a row are added in one pass in double precision, and the two warps meet in shared memory
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: normalise<V>
    grid: ["ceil_div(N, 4)"]
    block: [64, 4]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int LANES = 64, ROWS = 4;

template <int V> struct alignas(4 * V) Pack { float value[V]; };

template <int V>
__global__ void __launch_bounds__(LANES * ROWS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ double2 halves[ROWS][2];
    const int row = blockIdx.x * ROWS + threadIdx.y, packs = C / V;
    const Pack<V>* values = reinterpret_cast<const Pack<V>*>(x + size_t(row) * C);

    double sum = 0.0, squares = 0.0;
    if (row < N) {
        for (int i = threadIdx.x; i < packs; i += LANES) {
            const Pack<V> pack = values[i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                sum += pack.value[j];
                squares += double(pack.value[j]) * pack.value[j];
            }
        }
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        squares += __shfl_xor_sync(0xffffffffu, squares, mask);
    }
    if (threadIdx.x % 32 == 0) halves[threadIdx.y][threadIdx.x / 32] = make_double2(sum, squares);
    __syncthreads();
    if (row >= N) return;

    const double2 one = halves[threadIdx.y][0], other = halves[threadIdx.y][1];
    const double mean = (one.x + other.x) / C;
    const double variance = (one.y + other.y) / C - mean * mean;
    const float middle = float(mean), inverse = rsqrtf(fmaxf(float(variance), 0.0f) + eps);
    const Pack<V>* gains = reinterpret_cast<const Pack<V>*>(weight);
    const Pack<V>* shifts = reinterpret_cast<const Pack<V>*>(bias);
    Pack<V>* results = reinterpret_cast<Pack<V>*>(out + size_t(row) * C);
    for (int i = threadIdx.x; i < packs; i += LANES) {
        Pack<V> pack = values[i];
        const Pack<V> gain = gains[i], shift = shifts[i];
#pragma unroll
        for (int j = 0; j < V; ++j) pack.value[j] = fmaf((pack.value[j] - middle) * inverse, gain.value[j], shift.value[j]);
        results[i] = pack;
    }
}
