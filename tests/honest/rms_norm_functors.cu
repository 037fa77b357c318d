/* evoengine
name: rms_norm_functors
precision: fp32
summary: generic row transformation - element loaders, reductions and epilogues as functors and lambdas; template warps per row
tunables:
  WARPS_PER_ROW: [4, 1, 2, 8]
  ROWS: [2, 1, 4]
require:
  - WARPS_PER_ROW * ROWS <= 32
launches:
  - kernel: rms_norm<WARPS_PER_ROW, ROWS>
    grid: ["ceil_div(N, ROWS)"]
    block: ["WARP_SIZE * WARPS_PER_ROW", ROWS]
    args: [x, weight, out, N, C, eps]
*/
namespace rows {

struct Plus {
    static constexpr float identity = 0.0f;
    __device__ float operator()(float a, float b) const { return a + b; }
};

template <int WARPS, int COUNT, class Op>
class Reduction {
public:
    struct Storage { float partial[COUNT][WARPS]; };
    __device__ Reduction(Storage& storage, Op op) : storage_(storage), op_(op) {}

    __device__ float operator()(float value) const {
        for (int distance = 1; distance < 32; distance <<= 1) value = op_(value, __shfl_xor_sync(0xffffffffu, value, distance));
        if constexpr (WARPS > 1) {
            if (threadIdx.x % 32 == 0) storage_.partial[threadIdx.y][threadIdx.x / 32] = value;
            __syncthreads();
            value = Op::identity;
            for (int w = 0; w < WARPS; ++w) value = op_(value, storage_.partial[threadIdx.y][w]);
        }
        return value;
    }

private:
    Storage& storage_;
    Op op_;
};

template <int STRIDE, class Body> __device__ void for_each(int count, Body&& body) {
    for (int i = threadIdx.x; i < count; i += STRIDE) body(i);
}

}  // namespace rows

template <int WARPS, int ROWS_HERE>
__global__ void __launch_bounds__(32 * WARPS * ROWS_HERE)
rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int N, int C, float eps) {
    using Sum = rows::Reduction<WARPS, ROWS_HERE, rows::Plus>;
    __shared__ typename Sum::Storage storage;
    const int row = blockIdx.x * ROWS_HERE + threadIdx.y, valid = row < N ? C : 0;
    const float* in = x + size_t(row) * C;
    float squares = 0.0f;
    rows::for_each<32 * WARPS>(valid, [&](int i) { squares += in[i] * in[i]; });
    const float scale = 1.0f / sqrtf(Sum(storage, rows::Plus{})(squares) / C + eps);
    rows::for_each<32 * WARPS>(valid, [&](int i) { out[size_t(row) * C + i] = in[i] * scale * weight[i]; });
}
