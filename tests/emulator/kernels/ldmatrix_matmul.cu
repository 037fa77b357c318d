#include <cuda_fp16.h>

constexpr int BM = 32, BN = 32, BK = 64;    // four warps, each 16 x 16

// 16-byte pieces of a row are exchanged by the row's number, so that eight rows of one column lie in all 32 banks.
template <int WIDTH> __device__ __forceinline__ int swizzle(int row, int col) {
    return row * WIDTH + (((col / 8) ^ (row % (WIDTH / 8))) * 8) + col % 8;
}

__device__ __forceinline__ unsigned address(const __half* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Sides are multiples of 8; ldmatrix brings A in rows and B, transposed, in columns.
__global__ void __launch_bounds__(128)
ldmatrix_matmul(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(128) __half As[BM * BK];
    __shared__ __align__(128) __half Bs[BK * BN];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, wm = warp / 2 * 16, wn = warp % 2 * 16;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const uint4 zero = make_uint4(0, 0, 0, 0);
    float c[2][4] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = tid; i < BM * BK / 8; i += 128) {
            const int r = i / (BK / 8), k = i % (BK / 8) * 8;
            const bool inside = row0 + r < M && k0 + k < K;
            *reinterpret_cast<uint4*>(&As[swizzle<BK>(r, k)]) =
                inside ? *reinterpret_cast<const uint4*>(&A[(row0 + r) * K + k0 + k]) : zero;
        }
        for (int i = tid; i < BK * BN / 8; i += 128) {
            const int k = i / (BN / 8), n = i % (BN / 8) * 8;
            const bool inside = k0 + k < K && col0 + n < N;
            *reinterpret_cast<uint4*>(&Bs[swizzle<BN>(k, n)]) =
                inside ? *reinterpret_cast<const uint4*>(&B[(k0 + k) * N + col0 + n]) : zero;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a[4], b[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                         : "r"(address(&As[swizzle<BK>(wm + lane % 16, k + lane / 16 * 8)])));
            for (int half = 0; half < 2; ++half)    // x2 uses the addresses of lanes 0 to 15
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                             : "=r"(b[2 * half]), "=r"(b[2 * half + 1])
                             : "r"(address(&Bs[swizzle<BN>(k + lane % 16, wn + half * 8)])));
            for (int half = 0; half < 2; ++half)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(c[half][0]), "+f"(c[half][1]), "+f"(c[half][2]), "+f"(c[half][3])
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * half]), "r"(b[2 * half + 1]));
        }
        __syncthreads();
    }
    for (int half = 0; half < 2; ++half)
        for (int part = 0; part < 2; ++part) {
            const int r = row0 + wm + lane / 4 + part * 8, n = col0 + wn + half * 8 + lane % 4 * 2;
            if (r < M && n < N) *reinterpret_cast<__half2*>(&C[r * N + n]) = __floats2half2_rn(c[half][2 * part], c[half][2 * part + 1]);
        }
}
