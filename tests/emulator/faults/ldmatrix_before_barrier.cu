// Warp 1 loads the matrix that warp 0 is storing.
#include <cuda_fp16.h>
__global__ void __launch_bounds__(64) ldmatrix_before_barrier(const half* in, unsigned* out) {
    __shared__ __align__(16) half tile[16 * 16];
    const int t = threadIdx.x, lane = t % 32;
    if (t < 32) reinterpret_cast<uint4*>(tile)[t] = reinterpret_cast<const uint4*>(in)[t];
#ifdef FIXED
    __syncthreads();
#endif
    unsigned a[4];
    const unsigned from = __cvta_generic_to_shared(tile + lane % 16 * 16 + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"    // FAULT
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(from) : "memory");
    for (int i = 0; i < 4; ++i) out[t * 4 + i] = a[i];
}
