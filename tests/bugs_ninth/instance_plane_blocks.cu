/* evoengine
name: instance_plane_blocks
precision: fp32
summary: a block has a plane; its mean is known before the squares of the deviations are added
let:
  VEC: 4 if (H * W) % 4 == 0 else 1
launches:
  - kernel: instance_norm_kernel<VEC>
    grid: [C, N]
    block: [192]
    args: [x, weight, bias, out, mean, inverse, H * W, eps, slope]
*/
template <int VEC> struct alignas(4 * VEC) Values { float v[VEC]; };

constexpr int kThreads = 192;
constexpr int kWarps = kThreads / 32;

// Sum over the block; every thread gets the result.
__device__ float block_sum(float value, float* shared) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int mask = 16; mask >= 1; mask >>= 1) value += __shfl_xor_sync(0xffffffff, value, mask);
    __syncthreads();   // the sums of an earlier call have been read
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < kWarps; ++w) total += shared[w];
    return total;
}

template <int VEC>
__global__ void __launch_bounds__(kThreads)
instance_norm_kernel(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                     float* __restrict__ out, float* __restrict__ mean_out, float* __restrict__ inverse_out, int size,
                     float eps, float slope) {
    __shared__ float shared[kWarps];
    const int channel = blockIdx.x, image = blockIdx.y, channels = gridDim.x;
    const int plane = image * channels + channel;
    const Values<VEC>* in = reinterpret_cast<const Values<VEC>*>(x + (size_t)plane * size);
    Values<VEC>* to = reinterpret_cast<Values<VEC>*>(out + (size_t)plane * size);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < size / VEC; i += kThreads) {
        const Values<VEC> some = in[i];
        for (int e = 0; e < VEC; ++e) sum += some.v[e];
    }
    const float mean = block_sum(sum, shared) / size;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < size / VEC; i += kThreads) {
        const Values<VEC> some = in[i];
        for (int e = 0; e < VEC; ++e) {
            const float d = some.v[e] - mean;
            squares += d * d;
        }
    }
    const float variance = block_sum(squares, shared) / size;
    const float inverse = 1.0f / sqrtf(variance + eps);

    if (threadIdx.x == 0) {
        mean_out[plane] = mean;
        inverse_out[plane] = inverse;
    }
    const float gain = weight[channel] * inverse, shift = bias[channel];
    for (int i = threadIdx.x; i < size / VEC; i += kThreads) {
        const Values<VEC> some = in[i];
        Values<VEC> result;
        for (int e = 0; e < VEC; ++e) {
            const float y = (some.v[e] - mean) * gain + shift;
            result.v[e] = y > 0.0f ? y : slope * y;
        }
        to[i] = result;
    }
}
