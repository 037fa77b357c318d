"""Small sources that the compile tests share."""

VARIED = r"""
#include <cuda_fp16.h>
struct Big { int a[7]; half h; };
template <int N, bool C>
__global__ void mixed(const __grid_constant__ Big big, float* a, int n, bool flag, double d, half h) {
    __shared__ float tile[64];
    float local[40];
    for (int i = 0; i < 40; ++i) local[i] = a[i * n];
    tile[threadIdx.x] = local[n] * N + big.a[3];
    __syncthreads();
    a[threadIdx.x] = tile[63 - threadIdx.x] + local[n + 1] + flag + d + __half2float(h);
}
extern "C" __global__ void plain(int* p) { extern __shared__ int e[]; e[*p] = 1; *p = e[0]; }
__global__ void empty() {}
namespace inner { __global__ void deep(long long x) { if (x) __trap(); } }
__global__ void __launch_bounds__(1024) spilling(float* a, int n) {
    float x[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) x[i] = a[i * n + threadIdx.x];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 96; ++i) sum += x[i] * x[95 - i] + a[i];
    a[threadIdx.x] = sum;
#pragma unroll
    for (int i = 0; i < 96; ++i) a[i * n + threadIdx.x] = x[i] + sum;
}
__device__ __noinline__ float helper(float* a, int n) {
    float local[100];
    for (int i = 0; i < 100; ++i) local[i] = a[i + n];
    return local[n % 100] + local[(n + 7) % 100];
}
__global__ void calling(float* a, int n) { __shared__ double s[100]; s[n] = helper(a, n); __syncthreads(); a[0] = s[n + 1]; }
"""
VARIED_KERNELS = (
    "mixed<64, false>",
    "mixed<32, true>",
    "plain",
    "empty",
    "inner::deep",
    "spilling",
    "calling",
)

COPY = (
    "__global__ void copy(const float* a, float* b, int n) { int i = blockIdx.x * blockDim.x +"
    " threadIdx.x; if (i < n) b[i] = a[i]; }\n"
)
