/* evoengine
name: fft_half_turns
precision: fp16
summary: the definition, a thread a result; a table of one turn in shared memory is rounded to half precision, sums are in single precision and go from the last element to the first
launches:
  - kernel: transform<N>
    grid: [B]
    block: [N]
    args: [real, imaginary, cosines, sines]
*/
#include <cuda_fp16.h>

template <int N>
__global__ void __launch_bounds__(N)
transform(const float* __restrict__ real, const float* __restrict__ imaginary, float* __restrict__ cosines,
          float* __restrict__ sines) {
    __shared__ __half2 turns[N];
    __shared__ float2 row[N];
    const int k = threadIdx.x;
    const size_t base = size_t(blockIdx.x) * N;
    float sine, cosine;
    sincospif(-2.0f * k / N, &sine, &cosine);
    turns[k] = __floats2half2_rn(cosine, sine);
    row[k] = make_float2(real[base + k], imaginary[base + k]);
    __syncthreads();
    float x = 0.0f, y = 0.0f;
    for (int i = N - 1; i >= 0; --i) {
        const float2 turn = __half22float2(turns[i * k % N]), value = row[i];
        x += value.x * turn.x - value.y * turn.y;
        y += value.x * turn.y + value.y * turn.x;
    }
    cosines[base + k] = x;
    sines[base + k] = y;
}
