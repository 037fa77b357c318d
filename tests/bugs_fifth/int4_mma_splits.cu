/* evoengine
name: int4_mma_splits
precision: fp16
summary: codes become halves by the bits of 1024 and meet x in mma.sync; the depth is split among blocks, whose sums are added by atomics; a second launch adds the bias
tunables:
  SPLITS: [2, 1, 3]
let:
  DEPTH: round_up(ceil_div(K, SPLITS), 64)
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: add_products
    grid: ["ceil_div(N, 64)", "ceil_div(M, 32)", "ceil_div(K, DEPTH)"]
    block: [128]
    args: [x, codes, scales, zeros, sums, M, N, K, GROUP, DEPTH]
  - kernel: add_bias
    grid: ["ceil_div(N, 64)", M]
    block: [64]
    args: [sums, bias, out, N]
*/
#include <cuda_fp16.h>

constexpr int BM = 32, BN = 64, BK = 32, PITCH = BK + 8, THREADS = 128;

__device__ __forceinline__ half2 as_half2(unsigned bits) { return *reinterpret_cast<half2*>(&bits); }

// Eight codes of a word less `zero`, as halves: 0x6400 is 1024, whose last bits count ones. The
// codes in bits 4 to 7 of a half count 16 there, so these are divided by it.
__device__ __forceinline__ void unpack(unsigned word, int zero, half (&to)[8]) {
    const half2 less_low = __half2half2(__int2half_rn(-1024 - zero)), less_high = __half2half2(__int2half_rn(-64 - zero));
    const half2 sixteenth = __half2half2(__float2half(0.0625f));
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const half2 low = __hadd2(as_half2(((word >> (8 * i)) & 0x000f000fu) | 0x64006400u), less_low);
        const half2 high = __hfma2(as_half2(((word >> (8 * i)) & 0x00f000f0u) | 0x64006400u), sixteenth, less_high);
        to[2 * i] = __low2half(low);
        to[2 * i + 4] = __high2half(low);
        to[2 * i + 1] = __low2half(high);
        to[2 * i + 5] = __high2half(high);
    }
}

__device__ __forceinline__ unsigned address_of(const half* from) {
    return static_cast<unsigned>(__cvta_generic_to_shared(from));
}

__global__ void __launch_bounds__(THREADS)
add_products(const float* x, const unsigned char* codes, const float* scales, const unsigned char* zeros, float* sums,
             int M, int N, int K, int group_size, int depth) {
    __shared__ __align__(16) half x_tile[BM * PITCH];
    __shared__ __align__(16) half w_tile[BN * PITCH];  // [column][depth]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    const int begin = blockIdx.z * depth, end = min(K, begin + depth);
    float sum[4][4] = {};
    for (int k = begin; k < end; k += BK) {
        for (int i = threadIdx.x; i < BM * BK / 4; i += THREADS) {
            const int r = i / (BK / 4), c = i % (BK / 4) * 4;
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (block_row + r < M) four = *reinterpret_cast<const float4*>(x + size_t(block_row + r) * K + k + c);
            half2* to = reinterpret_cast<half2*>(x_tile + r * PITCH + c);
            to[0] = __floats2half2_rn(four.x, four.y);
            to[1] = __floats2half2_rn(four.z, four.w);
        }
        for (int i = threadIdx.x; i < BN * BK / 8; i += THREADS) {
            const int n = i / (BK / 8), c = i % (BK / 8) * 8;
            half eight[8];
            for (int j = 0; j < 8; ++j) eight[j] = __float2half(0.0f);
            if (block_column + n < N) {
                const size_t group = size_t(block_column + n) * (K / group_size) + (k + c) / group_size;
                const unsigned word = *reinterpret_cast<const unsigned*>(codes + (size_t(block_column + n) * K + k + c) / 2);
                unpack(word, zeros[group], eight);
                const half scale = __float2half(scales[group]);
                for (int j = 0; j < 8; ++j) eight[j] = __hmul(eight[j], scale);
            }
            *reinterpret_cast<uint4*>(w_tile + n * PITCH + c) = *reinterpret_cast<const uint4*>(eight);
        }
        __syncthreads();
        for (int d = 0; d < BK; d += 16) {
            unsigned a[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                         : "r"(address_of(x_tile + (warp_row + lane % 16) * PITCH + d + lane / 16 * 8)));
            for (int j = 0; j < 4; ++j) {
                unsigned b[2];
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(b[0]), "=r"(b[1])
                             : "r"(address_of(w_tile + (warp_column + j * 8 + lane % 8) * PITCH + d + lane / 8 % 2 * 8)));
                asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                    : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        for (int e = 0; e < 4; ++e) {
            const int row = block_row + warp_row + lane / 4 + e / 2 * 8;
            const int column = block_column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
            if (row < M && column < N) atomicAdd(sums + size_t(row) * N + column, sum[j][e]);
        }
}

__global__ void add_bias(const float* sums, const float* bias, float* out, int N) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < N) out[size_t(row) * N + column] = sums[size_t(row) * N + column] + bias[column];
}
