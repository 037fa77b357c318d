/* evoengine
name: rms_norm_standard_library
precision: fp32
summary: libcu++ - cuda::barrier for the block, cuda::atomic_ref for the sum, cuda::std arrays and limits
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    args: [x, weight, out, C, eps]
*/
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/array>
#include <cuda/std/limits>

__global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int C, float eps) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ Barrier barrier;
    __shared__ float total;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        total = 0.0f;
    }
    __syncthreads();
    const float* row = x + (size_t)blockIdx.x * C;
    cuda::std::array<float, 4> sums{};
    for (int i = threadIdx.x, n = 0; i < C; i += blockDim.x, ++n) sums[n % 4] += row[i] * row[i];
    cuda::atomic_ref<float, cuda::thread_scope_block>(total).fetch_add((sums[0] + sums[1]) + (sums[2] + sums[3]), cuda::memory_order_relaxed);
    barrier.arrive_and_wait();
    const float scale = 1.0f / sqrtf(fmaxf(total / C, cuda::std::numeric_limits<float>::min()) + eps);
    for (int i = threadIdx.x; i < C; i += blockDim.x) out[(size_t)blockIdx.x * C + i] = row[i] * scale * weight[i];
}
