#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int D = 64, ROWS = 16, KEYS = 16;

// Q * K^T on tensor cores, softmax over the whole row in shared memory, P * V by scalars. S is padded to 16 keys in shared memory.
__global__ void __launch_bounds__(128)
attention_wmma(const half* q, const half* k, const half* v, half* out, int S, float scale) {
    extern __shared__ __align__(32) unsigned char shared[];
    const int padded = (S + KEYS - 1) / KEYS * KEYS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    half* Qs = reinterpret_cast<half*>(shared);             // [ROWS][D]
    half* Ks = Qs + ROWS * D;                               // [padded][D]
    float* P = reinterpret_cast<float*>(Ks + padded * D);   // [ROWS][padded]
    float* sums = P + ROWS * padded;                        // [ROWS]
    const size_t head = size_t(blockIdx.y) * S * D;
    const int row0 = blockIdx.x * ROWS;
    for (int i = threadIdx.x; i < ROWS * D; i += 128) Qs[i] = row0 + i / D < S ? q[head + row0 * D + i] : __float2half(0.0f);
    for (int i = threadIdx.x; i < padded * D; i += 128) Ks[i] = i / D < S ? k[head + i] : __float2half(0.0f);
    __syncthreads();
    for (int tile = warp; tile < padded / KEYS; tile += 4) {
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> s;
        wmma::fill_fragment(s, 0.0f);
        for (int d = 0; d < D; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
            wmma::load_matrix_sync(a, Qs + d, D);
            wmma::load_matrix_sync(b, Ks + tile * KEYS * D + d, D);
            wmma::mma_sync(s, a, b, s);
        }
        for (int i = 0; i < s.num_elements; ++i) s.x[i] *= scale;
        wmma::store_matrix_sync(P + tile * KEYS, s, padded, wmma::mem_row_major);
    }
    __syncthreads();
    for (int r = warp; r < ROWS; r += 4) {
        float top = -INFINITY, sum = 0.0f;
        for (int j = lane; j < S; j += 32) top = fmaxf(top, P[r * padded + j]);
        for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
        for (int j = lane; j < S; j += 32) sum += P[r * padded + j] = __expf(P[r * padded + j] - top);
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
        if (lane == 0) sums[r] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * D; i += 128) {
        const int r = i / D, d = i % D;
        if (row0 + r >= S) continue;
        float acc = 0.0f;
        for (int j = 0; j < S; ++j) acc += P[r * padded + j] * __half2float(v[head + j * D + d]);
        out[head + (row0 + r) * D + d] = __float2half(acc / sums[r]);
    }
}
