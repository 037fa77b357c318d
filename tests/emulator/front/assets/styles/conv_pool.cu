#include <cuda_runtime.h>

// Convolution, bias, activation and pooling in one; weights in constant memory set up by a kernel's own table, halo in dynamic shared memory.
#ifndef KERNEL_SIZE
#define KERNEL_SIZE 3
#endif
__constant__ float c_weights[KERNEL_SIZE * KERNEL_SIZE] = {0.f, -1.f, 0.5f, -1.f, 4.f, -1.f, 0.25f, -1.f, 0.f};
extern __shared__ unsigned char smem_raw[];

typedef enum { ACT_NONE, ACT_RELU, ACT_HARDSWISH } act_t;

template <act_t act> __device__ inline float activate(float x) {
    switch (act) {
        case ACT_RELU: return x > 0 ? x : 0;
        case ACT_HARDSWISH: return x * fminf(fmaxf(x + 3.f, 0.f), 6.f) / 6.f;
        default: return x;
    }
}

template <int TW, int TH, act_t act>
__global__ void conv_pool(const float* __restrict__ in, float* __restrict__ out, int H, int W) {
    constexpr int R = KERNEL_SIZE / 2, SW = TW + 2 * R, SH = TH + 2 * R;
    float(*tile)[SW] = reinterpret_cast<float(*)[SW]>(smem_raw);
    const dim3 at(blockIdx.x * TW, blockIdx.y * TH);
    const float* plane = in + (size_t)blockIdx.z * H * W;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < SW * SH; i += blockDim.x * blockDim.y) {
        const int y = (int)at.y + i / SW - R, x = (int)at.x + i % SW - R;
        tile[i / SW][i % SW] = (y >= 0 && y < H && x >= 0 && x < W) ? plane[y * W + x] : 0.0f;
    }
    __syncthreads();
    float best = -3.402823466e+38F;
#pragma unroll
    for (int dy = 0; dy < 2; ++dy)
#pragma unroll
        for (int dx = 0; dx < 2; ++dx) {
            float acc = 0.1f;
#pragma unroll
            for (int k = 0; k < KERNEL_SIZE * KERNEL_SIZE; ++k)
                acc += tile[2 * threadIdx.y + dy + k / KERNEL_SIZE][2 * threadIdx.x + dx + k % KERNEL_SIZE] * c_weights[k];
            best = max(best, activate<act>(acc));
        }
    const int ox = at.x / 2 + threadIdx.x, oy = at.y / 2 + threadIdx.y;
    if (ox < W / 2 && oy < H / 2) out[((size_t)blockIdx.z * (H / 2) + oy) * (W / 2) + ox] = best;
}
