#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

// Statistics by Welford's method, merged through a class with operators; normalised by the same block.
template <typename T = float>
struct Welford {
    T mean = T(0), m2 = T(0);
    int n = 0;
    __device__ void push(T x) {
        ++n;
        const T delta = x - mean;
        mean += delta / n;
        m2 += delta * (x - mean);
    }
    __device__ Welford& operator+=(const Welford& o) {
        if (o.n == 0) return *this;
        const T delta = o.mean - mean;
        const int total = n + o.n;
        mean += delta * o.n / total;
        m2 += o.m2 + delta * delta * n * o.n / total;
        n = total;
        return *this;
    }
    __device__ T variance() const { return m2 / n; }
};

template <typename T, int SIZE>
__device__ Welford<T> merged(cg::thread_block_tile<SIZE> tile, Welford<T> w) {
    for (int i = tile.size() / 2; i > 0; i >>= 1) {
        Welford<T> other;
        other.mean = tile.shfl_down(w.mean, i);
        other.m2 = tile.shfl_down(w.m2, i);
        other.n = tile.shfl_down(w.n, i);
        w += other;
    }
    return w;
}

template <int BLOCK>
__global__ void batch_norm(const float* __restrict__ x, const float2* __restrict__ affine, float* __restrict__ y, int batch, int channels, int spatial, float eps) {
    __shared__ char raw[sizeof(Welford<float>) * (BLOCK / 32)] __attribute__((aligned(16)));
    __shared__ float stats[2];
    auto* partial = reinterpret_cast<Welford<float>*>(raw);
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    const int c = blockIdx.x, total = batch * spatial;
    Welford<> w;
    for (int i = block.thread_rank(); i < total; i += BLOCK) w.push(x[((i / spatial) * channels + c) * spatial + i % spatial]);
    w = merged<float, 32>(warp, w);
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = w;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        Welford<> all = warp.thread_rank() < BLOCK / 32 ? partial[warp.thread_rank()] : Welford<>();
        all = merged<float, 32>(warp, all);
        if (cg::thread_rank(warp) == 0) { stats[0] = all.mean; stats[1] = rsqrtf(all.variance() + eps); }
    }
    cg::sync(block);
    const auto [gamma, beta] = affine[c];
    for (int i = threadIdx.x; i < total; i += BLOCK) {
        const int at = ((i / spatial) * channels + c) * spatial + i % spatial;
        y[at] = (x[at] - stats[0]) * stats[1] * gamma + beta;
    }
}
