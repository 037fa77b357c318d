/* evoengine
name: rms_norm_owned_steps
precision: fp32
summary: readers of a row behind an interface with a virtual destructor, placement new into shared memory, 128-bit index arithmetic
launches:
  - kernel: rms_norm
    grid: [N]
    block: [THREADS]
    args: [x, weight, out, C, eps]
tunables:
  THREADS: [128, 256]
*/
#include <new>

class Reader {
public:
    __device__ virtual ~Reader() {}
    __device__ virtual float read(int column) const = 0;
};
class Plain : public Reader {
public:
    __device__ explicit Plain(const float* row) : row_(row) {}
    __device__ float read(int column) const override { return row_[column]; }

protected:
    const float* row_;
};
class Weighted final : public Plain {
public:
    __device__ Weighted(const float* row, const float* weight) : Plain(row), weight_(weight) {}
    __device__ float read(int column) const override { return row_[column] * weight_[column]; }

private:
    const float* weight_;
};

__device__ __noinline__ float sum_of_squares(const Reader& reader, int C) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += THREADS) sum += reader.read(i) * reader.read(i);
    return sum;
}

__global__ void rms_norm(const float* x, const float* weight, float* out, int C, float eps) {
    __shared__ float sums[THREADS];
    __shared__ alignas(alignof(Weighted)) unsigned char place[sizeof(Weighted)];
    const float* row = x + size_t((unsigned __int128)(blockIdx.x) * unsigned(C));
    if (threadIdx.x == 0) new (place) Weighted(row, weight);
    const Plain plain(row);
    sums[threadIdx.x] = sum_of_squares(plain, C);
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < THREADS; ++i) sum += sums[i];
    const Reader* weighted = reinterpret_cast<const Weighted*>(place);
    const float scale = 1.0f / sqrtf(sum / C + eps);
    for (int i = threadIdx.x; i < C; i += THREADS) out[size_t(blockIdx.x) * C + i] = weighted->read(i) * scale;
    __syncthreads();
    if (threadIdx.x == 0) weighted->~Reader();
}
